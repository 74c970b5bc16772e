/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two processes have the PID 1, each in a PID namespace of its own. They are children of one image,
 * and run on coroutines at the same address at the same time. Pipes fix the order:
 *
 *   process 1:  calls first() on its coroutine, leaves it
 *   process 2:  calls second() on its coroutine, leaves it
 *   process 1:  goes on in first(), ends
 *   process 2:  goes on in second(), ends
 *
 * Exits with 77 if there are no PID namespaces.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define KEEP __attribute__((noipa))

static char stack[65536];
static ucontext_t start, coroutine;
static int process, to_second[2], to_first[2], to_second_again[2];

KEEP void leaf(void)
{
	__asm__ volatile("");
}

KEEP void leave(void)
{
	swapcontext(&coroutine, &start);
	leaf();
}

KEEP void first(void)
{
	leaf();
	leave();
	leaf();
}

KEEP void second(void)
{
	leaf();
	leave();
	leaf();
}

static void body(void)
{
	if (process == 1)
		first();
	else
		second();
}

static void tell(const int *pipe)
{
	if (write(pipe[1], "x", 1) != 1)
		_exit(1);
}

static void wait_for(const int *pipe)
{
	char c;

	if (read(pipe[0], &c, 1) != 1)
		_exit(1);
}

static int run(void)
{
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = sizeof(stack);
	coroutine.uc_link = &start;
	makecontext(&coroutine, body, 0);
	if (process == 2)
		wait_for(to_second);
	swapcontext(&start, &coroutine);
	tell(process == 1 ? to_second : to_first);
	wait_for(process == 1 ? to_first : to_second_again);
	swapcontext(&start, &coroutine);
	if (process == 1)
		tell(to_second_again);
	return 0;
}

static int end_of(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ?
	       WEXITSTATUS(status) : 1;
}

/* Runs a process with the PID 1. */
static int in_namespace(void)
{
	pid_t pid;

	if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
		return 77;
	pid = fork();
	if (!pid)
		_exit(getpid() == 1 ? run() : 1);
	return end_of(pid);
}

int main(void)
{
	pid_t pids[2];
	int end;

	if (pipe(to_second) || pipe(to_first) || pipe(to_second_again))
		return 1;
	for (process = 1; process <= 2; process++) {
		pids[process - 1] = fork();
		if (!pids[process - 1])
			_exit(in_namespace());
	}
	close(to_second[1]);
	close(to_first[1]);
	close(to_second_again[1]);
	end = end_of(pids[0]);
	return end_of(pids[1]) | end;
}
