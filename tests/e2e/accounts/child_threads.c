/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Forks a child whose main thread makes no traced call. The child's other threads make its first
 * traced calls. For argv[1] ms, these threads make a few calls each millisecond. During this time,
 * the recorder looks for dead threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 6

static volatile unsigned long sink;
static double seconds;

__attribute__((noinline)) void leaf(unsigned long i)
{
	sink += i;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *call(void *arg)
{
	unsigned long *calls = arg;
	double end = now() + seconds;

	do {
		struct timespec t = { 0, 1000000 };

		for (unsigned long i = 0; i < 5; i++)
			leaf(i);
		*calls += 5;
		nanosleep(&t, NULL);
	} while (now() < end);
	return NULL;
}

int main(int argc, char **argv)
{
	seconds = (argc > 1 ? atof(argv[1]) : 700) / 1000;
	if (!fork()) {
		pthread_t t[THREADS];
		unsigned long calls[THREADS] = { 0 }, sum = 0;

		for (int i = 0; i < THREADS; i++)
			pthread_create(&t[i], NULL, call, &calls[i]);
		for (int i = 0; i < THREADS; i++) {
			pthread_join(t[i], NULL);
			sum += calls[i];
		}
		printf("calls %lu %lu\n", sum, sum);
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	return 0;
}
