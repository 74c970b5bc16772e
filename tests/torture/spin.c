/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads on all processors call functions of many shapes and check all results, until stdin has a
 * byte or ends. A wrong result or a lost signal ends the program with a message. When the threads
 * run, the program prints "pid N". At the end it prints on stderr how many rounds each thread has
 * made.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "shapes.h"

static volatile int stop;
static volatile long signals;
static void f_on_usr1(int sig) { signals += f_leaf(1) == 3; }

static long rounds[64];

static void *spinner(void *arg)
{
	long id = (long)arg, n;

	for (n = 0; !stop; n++) {
		one_round(n & 4095);
		if (id == 1 && n % 100 == 0) {
			long before = signals;

			raise(SIGUSR1);
			expect("signal", signals, before + 1);
		}
		rounds[id] = n;
	}
	return NULL;
}

/* A thread that runs patched functions with all signals blocked. */
static void *deaf(void *arg)
{
	sigset_t set;

	sigfillset(&set);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	return spinner(arg);
}

int main(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), nr, i;
	pthread_t t[64];
	char byte;
	ssize_t r;

	nr = cpus < 2 ? 2 : cpus > 16 ? 16 : cpus;
	signal(SIGUSR1, f_on_usr1);
	for (i = 0; i <= nr; i++) {
		cpu_set_t set;

		if (pthread_create(&t[i], NULL, i == nr ? deaf : spinner, (void *)(i + 1)))
			die("pthread_create");
		CPU_ZERO(&set);
		CPU_SET(i % cpus, &set);
		if (i < nr)
			pthread_setaffinity_np(t[i], sizeof(set), &set);
	}
	printf("pid %d\n", getpid());
	fflush(stdout);
	r = read(0, &byte, 1);
	if (r < 0)
		die("read: %m");
	stop = 1;
	for (i = 0; i <= nr; i++)
		pthread_join(t[i], NULL);
	for (i = 0; i <= nr; i++) {
		if (!rounds[i + 1])
			die("thread %ld made no round", i);
		fprintf(stderr, "thread %ld: %ld rounds\n", i, rounds[i + 1]);
	}
	puts("all results right");
	return 0;
}
