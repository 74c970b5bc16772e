/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes argv[1] rounds of calls of functions that the agent replaces. All calls return. First
 * prints the sum of all results, which must be the same in all runs. Then prints each function's
 * name and number of calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static ucontext_t from, to;
static char stack[65536], other[65536];
static char *argv_none[] = { "none", NULL };
static int sum;

static void handler(int sig)
{
}

static void *thread(void *arg)
{
	return arg;
}

static void coroutine(void)
{
	swapcontext(&to, &from);
}

/* a tail call of a replaced function */
__attribute__((noinline)) int tail(int sig, struct sigaction *old)
{
	return sigaction(sig, NULL, old);
}

static void once(int none)
{
	struct sigaction act = { .sa_handler = handler }, old;
	stack_t alt = { .ss_sp = stack, .ss_size = sizeof(stack) };
	pthread_t t;
	sigset_t set;

	sigemptyset(&set);
	sum += sigaction(SIGUSR1, &act, &old) + sigaction(SIGKILL, &act, &old) +
	       tail(SIGUSR1, &old);
	sum += old.sa_handler == handler;
	sum += pthread_sigmask(SIG_BLOCK, &set, &set) + sigaltstack(&alt, NULL);
	sum += prctl(PR_GET_DUMPABLE) + (int)syscall(SYS_getppid) - getppid();
	pthread_create(&t, NULL, thread, &t);
	pthread_join(t, NULL);
	sum += execve("/none", argv_none, argv_none) + errno;
	sum += execveat(AT_FDCWD, "/none", argv_none, argv_none, 0) + errno;
	sum += fexecve(none, argv_none, argv_none) + errno;
	sum += setuid(getuid()) + setgid(getgid()) + setresuid(-1, getuid(), -1) +
	       seteuid(getuid());
	sum += mlockall(0x100) + errno;
	getcontext(&to);
	to.uc_stack.ss_sp = other;
	to.uc_stack.ss_size = sizeof(other);
	to.uc_link = NULL;
	makecontext(&to, coroutine, 0);
	swapcontext(&from, &to);
}

int main(int argc, char **argv)
{
	static const struct { const char *name; int calls; } calls[] = {
		{ "sigaction", 3 }, { "pthread_sigmask", 1 }, { "sigaltstack", 1 }, { "prctl", 1 },
		{ "syscall", 1 }, { "pthread_create", 1 }, { "execve", 1 }, { "execveat", 1 },
		{ "fexecve", 1 }, { "makecontext", 1 }, { "setuid", 1 }, { "setgid", 1 },
		{ "setresuid", 1 }, { "seteuid", 1 }, { "mlockall", 1 }, { "tail", 1 },
	};
	int n = argc > 1 ? atoi(argv[1]) : 1, none = open("/dev/null", O_RDONLY);

	for (int i = 0; i < n; i++)
		once(none);
	printf("%d\n", sum);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		printf("%s %d\n", calls[i].name, calls[i].calls * n);
	return 0;
}
