/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The main thread has another user than the thread that an attach borrows: it has changed its user
 * without libc. (With libc, the same happens for a moment, if the attach has begun and setuid isn't
 * replaced yet.) Prints "ready PID" and ends when it has read a byte.
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
	if (user && syscall(SYS_setresuid, user, user, user))
		return 77;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	return getchar() == EOF;
}
