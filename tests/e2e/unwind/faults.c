/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* faults heap | use | leak | ub | init | race | abort | none: makes the error that the argument
 * names, for sanitizers or valgrind to find. abort: calls abort(). none: makes no error. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N __attribute__((noinline))

static int shared;
static int *volatile kept;

N static int faulty(const char *what, int n)
{
	int *p = malloc(40), shift = 33 + n;

	kept = p;
	if (!strcmp(what, "heap"))
		return p[10 + n];
	if (!strcmp(what, "use")) {
		free(p);
		return p[n];
	}
	if (!strcmp(what, "ub"))
		return 1 << shift;
	if (!strcmp(what, "init") && kept[n])
		puts("set");
	if (!strcmp(what, "abort"))
		abort();
	free(p);
	kept = NULL;
	return 0;
}

N int outer(const char *what, int n)
{
	return faulty(what, n) + 1;
}

/* Leaks n blocks, and returns one more block. The stack and the registers may still hold pointers
 * to leaked blocks. Each call overwrites such pointers, so that leak detectors find the leaks. */
N static int *leak(int n)
{
	kept = malloc(40);
	kept[0] = n;
	return n ? leak(n - 1) : kept;
}

/*
 * ThreadSanitizer may miss two accesses that happen at the same moment. So main's access begins
 * after the other thread's access, and both threads run until both accesses are over. Assembly
 * enforces this order. ThreadSanitizer doesn't see assembly, so it reports the accesses as a race.
 */
static int over;

static void say_over(void)
{
	__asm__ volatile("lock incl %0" : "+m"(over));
}

static void wait_until_over(int accesses)
{
	int n;

	do
		__asm__ volatile("pause; movl %1, %0" : "=r"(n) : "m"(over));
	while (n < accesses);
}

N static void racer(int before)
{
	wait_until_over(before);
	shared++;
	say_over();
	wait_until_over(2);
}

static void *thread(void *arg)
{
	racer(0);
	return arg;
}

N static int race(void)
{
	pthread_t t;

	pthread_create(&t, NULL, thread, NULL);
	racer(1);
	pthread_join(t, NULL);
	return shared > 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "none";
	int r = 0;

	if (!strcmp(what, "race"))
		r = race();
	else if (!strcmp(what, "leak"))
		r = leak(20) == NULL;
	else
		r = outer(what, argc > 2);
	printf("end %d\n", r != 77);
	return 0;
}
