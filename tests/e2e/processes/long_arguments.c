/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Executes a program with the longest arguments that the kernel allows, by each of the three
 * functions of libc. Prints the error of each exec, or 0. The longest arguments are found by raw
 * system calls, which the agent doesn't see.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST	100000		/* the length of one argument; the kernel allows 131071 */
#define PROGRAM	"/bin/true"

static char text[MOST + 1], last[MOST + 1];
static char *args[] = { "true", text, text, last, NULL }, *none[] = { NULL };

static int end_of(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Makes the last argument n bytes long, and executes the program. Returns 0 or the error. */
static int run(int how, int n)
{
	pid_t pid = fork();

	if (pid)
		return end_of(pid);
	memset(last, 'x', (size_t)n);
	last[n] = 0;
	if (how == 0)
		execve(PROGRAM, args, none);
	else if (how == 1)
		execveat(AT_FDCWD, PROGRAM, args, none, 0);
	else if (how == 2)
		fexecve(open(PROGRAM, O_RDONLY | O_CLOEXEC), args, none);
	else
		syscall(SYS_execve, PROGRAM, args, none);
	_exit(errno);
}

/* The kernel allows a quarter of the stack's limit. */
int main(void)
{
	struct rlimit limit = { 1 << 20, 1 << 20 };
	int least = 0, most = MOST;

	memset(text, 'x', MOST);
	setrlimit(RLIMIT_STACK, &limit);
	if (run(3, 0) || run(3, MOST) != E2BIG)
		return 77;
	while (most - least > 1) {
		int n = (least + most) / 2;

		*(run(3, n) ? &most : &least) = n;
	}
	/* the kernel gives the image of an fexecve() another path: /dev/fd/N */
	least -= 16;
	for (int how = 0; how < 3; how++)
		printf("%d\n", run(how, least));
	return 0;
}
