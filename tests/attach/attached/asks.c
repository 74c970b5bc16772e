/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * asks USER: a program that isn't dumpable, and makes itself dumpable during a stop. It becomes
 * this user first. Prints "ready PID". For each line of its input, it does the following:
 *
 *   - A thread makes a vfork child, so that stops fail, and are tried again.
 *   - When a stop has made the program dumpable, the program does so itself, and the child ends.
 *   - It prints "asked", and what PR_GET_DUMPABLE returned before the call. After another line, it
 *     prints what the kernel says then.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int begun, over;

__attribute__((noinline)) void work(void)
{
	__asm__ volatile("");
}

static void *wait_for_child(void *arg)
{
	const struct timespec ms = { 0, 1000000 };
	pid_t pid = vfork();
	int status;

	if (!pid) {
		begun = 1;
		while (!over)
			nanosleep(&ms, NULL);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return arg;
}

/* The kernel's answer. The compiler can't replace this by a call of libc. */
static int raw_dumpable(void)
{
	long ret;

	__asm__ volatile("syscall" : "=a"(ret)
			 : "0"(SYS_prctl), "D"(PR_GET_DUMPABLE), "S"(0l), "d"(0l)
			 : "rcx", "r11", "memory");
	return (int)ret;
}

static void ask(void)
{
	pthread_t t;
	int seen;

	begun = over = 0;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || pthread_create(&t, NULL, wait_for_child, NULL))
		exit(1);
	while (!begun)
		usleep(1000);
	puts("begun");
	fflush(stdout);
	while (raw_dumpable() != 1)
		;
	seen = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
		exit(1);
	over = 1;
	pthread_join(t, NULL);
	printf("asked %d\n", seen);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uid_t user = argc > 1 ? (uid_t)atol(argv[1]) : 0;
	char line[100];

	if (user && setresuid(user, user, user))
		return 77;
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		ask();
		if (!fgets(line, sizeof(line), stdin))
			return 1;
		work();
		printf("%d\n", raw_dumpable());
		fflush(stdout);
	}
	return 0;
}
