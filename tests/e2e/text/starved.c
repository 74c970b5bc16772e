/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads that get a processor only now and then. All of them run at low priority on one processor,
 * on which another process runs all the time. The program ends when its standard input is
 * closed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define NR_THREADS 12

static volatile long sum;

__attribute__((noinline)) void starved_work(long i)
{
	sum += i;
}

static void one_processor(void)
{
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all)) {
			CPU_SET(i, &one);
			break;
		}
	sched_setaffinity(0, sizeof(one), &one);
}

static void *works(void *unused)
{
	(void)unused;
	one_processor();
	setpriority(PRIO_PROCESS, 0, 15);	/* sets the nice value of this thread only */
	for (long i = 0;; i++)
		starved_work(i);
}

int main(void)
{
	pid_t busy = fork();
	pthread_t t;
	char c;

	if (!busy) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		one_processor();
		for (;;)
			;
	}
	for (int i = 0; i < NR_THREADS; i++)
		pthread_create(&t, NULL, works, NULL);
	while (read(0, &c, 1) > 0)
		;
	kill(busy, SIGKILL);
	puts("right");
	return 0;
}
