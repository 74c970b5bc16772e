/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes children by clone() that share its memory and have a TLS that libc hasn't filled. The
 * bytes of this TLS are 0, or ones. In the children, traced functions of the program and of libc
 * run, a signal mask changes, and a program is executed. Prints the sum of the children's exit
 * statuses, and whether a thread of libc still works.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 65536

static char tls[2 * SIZE] __attribute__((aligned(64)));	/* the thread pointer is in the middle */
static char stack[SIZE] __attribute__((aligned(64)));

__attribute__((noinline)) int work(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

__attribute__((noinline, optimize("no-stack-protector"))) static int child(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (arg)
		execl("/bin/sh", "sh", "-c", "exit 40", NULL);
	_exit(work(1) + (int)(getpid() == getppid()));
}

static int run(int flags, int fill, void *arg)
{
	int status = 0;
	pid_t pid;

	memset(tls, fill, sizeof(tls));
	pid = clone(child, stack + sizeof(stack), CLONE_VM | CLONE_SETTLS | SIGCHLD | flags, arg,
		    NULL, tls + SIZE, NULL);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
		printf("flags %x, fill %d: status %x\n", flags, fill, status);
		return 0;
	}
	return WEXITSTATUS(status);
}

static void *thread(void *arg)
{
	return (void *)(long)work(2);
}

int main(void)
{
	pthread_t t;
	void *result = NULL;
	int sum = run(CLONE_VFORK, 0, NULL) + run(CLONE_VFORK, 255, NULL) +
		  run(0, 0, NULL) + run(0, 255, NULL) + run(CLONE_VFORK, 0, stack);

	if (!pthread_create(&t, NULL, thread, NULL))
		pthread_join(t, &result);
	printf("%d %ld %d\n", sum, (long)result, work(3));
	return 0;
}
