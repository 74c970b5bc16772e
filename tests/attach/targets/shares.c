/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes a child that shares its memory, prints the child's PID, and waits for it. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[65536] __attribute__((aligned(16)));

static int child(void *arg)
{
	for (;;)
		pause();
	return 0;
}

int main(void)
{
	pid_t pid = clone(child, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

	if (pid < 0)
		return 1;
	printf("%d\n", pid);
	fflush(stdout);
	waitpid(pid, NULL, 0);
	return 0;
}
