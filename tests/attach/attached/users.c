/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * users -USER: a program with root's real user, and another effective user: it has given up its
 * rights for some time (seteuid).
 * users USER: a program whose threads have different users, unless USER is 0. The main thread
 * changes its user without libc, so the thread that an attach borrows still has the old user. (With
 * libc, the same can happen for a moment: if the attach has begun, and the agent hasn't replaced
 * setuid yet.) Prints "ready PID" and ends when it has read a byte.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	long user = argc > 1 ? atol(argv[1]) : 0;
	pthread_t t;

	if (pthread_create(&t, NULL, wait_for_ever, NULL))
		return 1;
	if (user < 0 ? seteuid((uid_t)-user) : user && syscall(SYS_setresuid, user, user, user))
		return 77;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	return getchar() == EOF;
}
