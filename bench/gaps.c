/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that measures how long it is stopped. Its threads read the clock without a pause. A gap
 * is the time between two reads. For each line of its input, it prints the longest gap since the
 * last line, in nanoseconds. The function tick() exists only to be traced.
 *
 *	gaps THREADS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned long longest;

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

__attribute__((noinline)) void tick(void)
{
	__asm__ volatile("");
}

static void note(unsigned long gap)
{
	unsigned long most = __atomic_load_n(&longest, __ATOMIC_RELAXED);

	while (gap > most && !__atomic_compare_exchange_n(&longest, &most, gap, 0, __ATOMIC_RELAXED,
							  __ATOMIC_RELAXED))
		;
}

static void *watch(void *arg)
{
	unsigned long last = now();

	for (;;) {
		unsigned long t = now();

		note(t - last);
		last = t;
		tick();
	}
	return arg;
}

int main(int argc, char **argv)
{
	char line[16];
	pthread_t t;

	for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--)
		pthread_create(&t, NULL, watch, NULL);
	while (fgets(line, sizeof(line), stdin)) {
		printf("%lu\n", __atomic_exchange_n(&longest, 0, __ATOMIC_RELAXED));
		fflush(stdout);
	}
	return 0;
}
