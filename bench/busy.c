/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A process whose threads make calls all the time. Each call computes for about a microsecond.
 *
 *   busy THREADS SECONDS
 *
 * Prints how many calls per second all threads have made together, as JSON. If SECONDS is 0, runs
 * until the end of its input, and answers each line with the number of calls that have been made.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_THREADS 256

static volatile int stop;

struct worker {
	pthread_t thread;
	unsigned long calls;
	char pad[128];		/* so that the threads' counts are in different cache lines */
};

__attribute__((noinline)) unsigned long work(unsigned long x)
{
	for (int i = 0; i < 700; i++)
		x = x * 6364136223846793005ul + 1442695040888963407ul;
	return x;
}

static void *run(void *arg)
{
	struct worker *w = arg;
	volatile unsigned long x = 1;

	while (!stop) {
		x = work(x);
		__atomic_store_n(&w->calls, w->calls + 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static unsigned long calls_of(const struct worker *w, int nr)
{
	unsigned long calls = 0;

	for (int i = 0; i < nr; i++)
		calls += __atomic_load_n(&w[i].calls, __ATOMIC_RELAXED);
	return calls;
}

static void answer(const struct worker *w, int nr)
{
	for (int c = getchar(); c != EOF; c = getchar()) {
		if (c != '\n')
			continue;
		printf("%lu\n", calls_of(w, nr));
		fflush(stdout);
	}
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static struct worker w[MAX_THREADS];
	int nr = argc > 1 ? atoi(argv[1]) : 16;
	double seconds = argc > 2 ? atof(argv[2]) : 1, begin;
	struct timespec ts = { .tv_sec = (time_t)seconds };

	if (nr < 1 || nr > MAX_THREADS)
		return 1;
	begin = now();
	for (int i = 0; i < nr; i++)
		pthread_create(&w[i].thread, NULL, run, &w[i]);
	if (seconds)
		nanosleep(&ts, NULL);
	else
		answer(w, nr);
	stop = 1;
	for (int i = 0; i < nr; i++)
		pthread_join(w[i].thread, NULL);
	if (seconds)
		printf("{\"rate\": %.0f}\n", (double)calls_of(w, nr) / (now() - begin));
	return 0;
}
