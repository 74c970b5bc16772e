/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 *   idle THREADS CALLS [MIB]
 *
 * THREADS threads make one call each. Then each thread waits, and holds a chunk. Meanwhile main
 * makes CALLS calls. Then the threads end, and all of this happens a second time. MIB: the program
 * first limits its address space to this number of MiB, and executes itself.
 *
 * Prints the number of calls of work().
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static pthread_barrier_t ready, end;
static volatile long sink;

__attribute__((noipa)) void work(long i)
{
	sink = i;
}

static void *idle(void *arg)
{
	work(1);
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&end);
	return arg;
}

static void round_of(int nr, long calls)
{
	pthread_t *ids = calloc((size_t)nr, sizeof(*ids));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 32768);
	pthread_barrier_init(&ready, NULL, (unsigned)nr + 1);
	pthread_barrier_init(&end, NULL, (unsigned)nr + 1);
	for (int i = 0; i < nr; i++)
		if (pthread_create(&ids[i], &attr, idle, NULL)) {
			perror("a thread");
			exit(1);
		}
	pthread_barrier_wait(&ready);
	for (long i = 0; i < calls; i++)
		work(i);
	pthread_barrier_wait(&end);
	for (int i = 0; i < nr; i++)
		pthread_join(ids[i], NULL);
	free(ids);
}

int main(int argc, char **argv)
{
	int nr = atoi(argv[1]);
	long calls = atol(argv[2]);

	if (argc > 3) {
		rlim_t bytes = (rlim_t)atol(argv[3]) << 20;

		setrlimit(RLIMIT_AS, &(struct rlimit){ bytes, bytes });
		argv[3] = NULL;
		execv(argv[0], argv);
		perror(argv[0]);
		return 1;
	}
	round_of(nr, calls);
	round_of(nr, calls);
	printf("%ld\n", 2 * (nr + calls));
	return 0;
}
