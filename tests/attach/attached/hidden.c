/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hidden USER: a program that isn't dumpable, and forks all the time. It becomes this user first,
 * unless USER is 0. Prints "ready PID", and after each line of its input the number of children
 * since the last line, and how many of them were dumpable.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int nr_children, nr_dumpable;

__attribute__((noinline)) void work(void)
{
	__asm__ volatile("");
}

static void *forks(void *arg)
{
	for (;;) {
		pid_t pid = fork();
		int status;

		if (!pid)
			_exit(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			_exit(1);
		__atomic_fetch_add(&nr_dumpable, status != 0, __ATOMIC_RELAXED);
		__atomic_fetch_add(&nr_children, 1, __ATOMIC_RELAXED);
		work();
	}
	return arg;
}

int main(int argc, char **argv)
{
	uid_t user = argc > 1 ? (uid_t)atol(argv[1]) : 0;
	char line[100];
	pthread_t t;

	if (user && setresuid(user, user, user))
		return 77;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || pthread_create(&t, NULL, forks, NULL))
		return 1;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int dumpable = __atomic_exchange_n(&nr_dumpable, 0, __ATOMIC_RELAXED);

		printf("%d %d\n", __atomic_exchange_n(&nr_children, 0, __ATOMIC_RELAXED), dumpable);
		fflush(stdout);
	}
	return 0;
}
