/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads make calls without a pause. When the program reads a line, a signal interrupts each of
 * these threads, and its handler never returns. Most of the handlers interrupt the code that
 * records the calls.
 *
 *   stuck THREADS
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST	64

static volatile int stuck;

__attribute__((noinline)) void leaf(void)
{
	__asm__ volatile("");
}

static void stay(int sig)
{
	__atomic_fetch_add(&stuck, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

static void *caller(void *arg)
{
	for (;;)
		leaf();
	return arg;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t t[MOST];
	char line[16];

	if (threads < 1 || threads > MOST)
		return 2;
	signal(SIGUSR1, stay);
	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, caller, NULL);
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < threads; i++)
			pthread_kill(t[i], SIGUSR1);
		while (stuck < threads)
			usleep(1000);
		printf("stick 0\n");
		fflush(stdout);
	}
	return 0;
}
