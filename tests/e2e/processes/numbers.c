/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes threads and short processes. From their pids and tids alone, a recorder can't tell whether
 * they live.
 *   numbers child          a thread other than the main thread makes a child's first call
 *   numbers space N        like "child", but in a new pid namespace, and with N idle children
 *   numbers spaces N       makes N namespaces, one after the other. The only process of each
 *                          namespace makes a few calls and ends
 *   numbers churn N        like "spaces", but the processes are in the program's own namespace
 * Prints the number of calls of work().
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS	8
#define ROUNDS	100		/* of 20 ms each: long enough that the recorder looks for dead
				 * threads meanwhile, but too few calls to fill a chunk */

static volatile unsigned long sink;
static unsigned long *calls;

__attribute__((noipa)) void work(int i)
{
	sink += (unsigned long)i;
}

static void *thread(void *arg)
{
	struct timespec t = { 0, 20000000 };

	(void)arg;
	prctl(PR_SET_NAME, "worker");
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < 5; k++)
			work(k);
		__atomic_fetch_add(calls, 5, __ATOMIC_RELAXED);
		nanosleep(&t, NULL);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++) {
		pthread_create(&t[i], NULL, thread, NULL);
		usleep(20000);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	_exit(0);
}

static void few_calls(void)
{
	usleep(40000);
	for (int i = 0; i < 10; i++)
		work(i);
	__atomic_fetch_add(calls, 10, __ATOMIC_RELAXED);
	_exit(0);
}

static void idle(int n)
{
	for (int i = 0; i < n; i++)
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
			_exit(0);
		}
}

/* Makes a pid namespace. The next child is its first process. */
static void new_space(void)
{
	if (unshare((geteuid() ? CLONE_NEWUSER : 0) | CLONE_NEWPID)) {
		perror("unshare");
		exit(77);
	}
}

static void wait_for(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		exit(1);
}

/* A parent can't fork any more after the first process of its new pid namespace has ended. So a new
 * parent makes each namespace. */
static void one_short(bool space)
{
	pid_t pid = fork(), inner;

	if (!pid) {
		if (space)
			new_space();
		inner = fork();
		if (!inner)
			few_calls();
		wait_for(inner);
		_exit(0);
	}
	wait_for(pid);
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 0;

	calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!strcmp(argv[1], "child") || !strcmp(argv[1], "space")) {
		idle(n);
		if (argv[1][0] == 's')
			new_space();
		pid_t pid = fork();
		if (!pid)
			threads();
		wait_for(pid);
	} else {
		for (int i = 0; i < n; i++)
			one_short(argv[1][0] == 's');
	}
	printf("%lu\n", *calls);
	return 0;
}
