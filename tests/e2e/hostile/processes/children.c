/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tracer's processes and threads must not be visible to waitpid(), and must not cause a
 * SIGCHLD. If a program waits for all children, it must find only its own children.
 * @flags -DNR=300
 * @quick -DNR=100
 * @markers NR main/one_family
 * @serve 100
 */
#include <signal.h>
#include <sys/wait.h>
#include "../hostile.h"

#ifndef __WALL
#define __WALL 0x40000000
#endif
static volatile int sigchlds;
static void on_chld(int sig) { sigchlds++; }

static KEEP void one_family(int n)
{
	int status, i, got = 0;
	pid_t pid;

	for (i = 0; i < 3; i++) {
		pid = fork();
		check(pid >= 0);
		if (!pid)
			_exit(i + 1);
	}
	while ((pid = waitpid(-1, &status, n & 1 ? __WALL : 0)) != -1 || errno == EINTR)
		if (pid > 0) {
			check(WIFEXITED(status));
			got += WEXITSTATUS(status);
		}
	check_eq(errno, ECHILD);
	check_eq(got, 6);
	check(waitpid(-1, &status, __WALL | WNOHANG) == -1 && errno == ECHILD);
	marker_begin(n);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_chld, .sa_flags = SA_NOCLDSTOP };
	int n, status;

	check(!sigaction(SIGCHLD, &sa, NULL));
	check(waitpid(-1, &status, __WALL | WNOHANG) == -1 && errno == ECHILD);
	check_eq(sigchlds, 0);
	for (n = 0; n < NR || !may_end(); n++)
		one_family(n);
	check(sigchlds >= NR && sigchlds <= 3 * n);
	puts("900 children, no others");
	return 0;
}
