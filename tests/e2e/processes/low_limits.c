/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A process that uses much address space makes a child. The child lowers its own limit below this,
 * so that nothing more can be mapped, and executes this program again. The limit has room for the
 * new program and its agent.
 *
 *   low_limits fork|vfork|handler as|data [NUMBER of further variables in the environment]
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOM (1ul << 30)
#define VARS_MAX 100000

extern char **environ;
static char **vars;
static int limited;

__attribute__((noipa)) void work(void)
{
	__asm__ volatile("nopl 8(%rax)");
}

static void begin(void)
{
	const struct rlimit limit = { ROOM, ROOM };

	if (setrlimit(limited, &limit))
		_exit(3);
	execve("/proc/self/exe", (char *[]){ "low_limits", NULL }, vars);
	_exit(4);
}

static void on_signal(int sig)
{
	pid_t pid = fork();

	if (!pid)
		begin();
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	int nr = 0, status = 0;

	work();
	if (argc < 3)
		return 0;
	limited = strcmp(argv[2], "as") ? RLIMIT_DATA : RLIMIT_AS;
	vars = calloc(VARS_MAX, sizeof(*vars));
	for (; environ[nr]; nr++)
		vars[nr] = environ[nr];
	for (int i = argc > 3 ? atoi(argv[3]) : 0; i > 0; i--)
		vars[nr++] = "variable=value";
	if (mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		return 2;
	if (!strcmp(argv[1], "handler")) {
		signal(SIGUSR1, on_signal);
		raise(SIGUSR1);
		return 0;
	}
	pid_t pid = strcmp(argv[1], "fork") ? vfork() : fork();
	if (!pid)
		begin();
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
