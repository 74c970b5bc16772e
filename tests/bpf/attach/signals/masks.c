/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * masks own|nested|swap: all signals are blocked, except during a sigsuspend(). A handler that
 * interrupts the sigsuspend() changes its mask, or makes a traced call. After the handler all
 * signals are blocked again. A read that faults would now end the program, so the agent must not
 * make such a read at the next call of look(). At the last call the signals are unblocked.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static const char *how;
static char alternate[1 << 18], stack[1 << 18];
static ucontext_t handlers, coroutines;

__attribute__((noipa)) void look(const void *nowhere)
{
	__asm__ volatile("");
}

static void coroutine(void)
{
	look((void *)8);
	swapcontext(&coroutines, &handlers);
}

static void change_stacks(void)
{
	getcontext(&coroutines);
	sigemptyset(&coroutines.uc_sigmask);
	coroutines.uc_stack.ss_sp = stack;
	coroutines.uc_stack.ss_size = sizeof(stack);
	makecontext(&coroutines, coroutine, 0);
	swapcontext(&handlers, &coroutines);
}

static void nested(int sig)
{
}

static void handler(int sig)
{
	sigset_t set, old;

	if (!strcmp(how, "own")) {
		sigemptyset(&set);
		sigaddset(&set, SIGUSR2);
		sigprocmask(SIG_BLOCK, &set, &old);
	} else if (!strcmp(how, "nested")) {
		kill(getpid(), SIGUSR2);
		look((void *)8);
	} else {
		change_stacks();
	}
}

static void handle(int sig, void (*fn)(int))
{
	struct sigaction sa = { .sa_handler = fn };

	if (!strcmp(how, "nested"))
		sa.sa_flags = SA_ONSTACK;
	sigaction(sig, &sa, NULL);
}

int main(int argc, char **argv)
{
	stack_t ss = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	sigset_t all, none;

	how = argc > 1 ? argv[1] : "own";
	sigfillset(&all);
	sigemptyset(&none);
	sigaltstack(&ss, NULL);
	handle(SIGUSR1, handler);
	handle(SIGUSR2, nested);
	look((void *)8);
	sigprocmask(SIG_SETMASK, &all, NULL);
	kill(getpid(), SIGUSR1);
	sigsuspend(&none);
	look((void *)8);
	sigprocmask(SIG_SETMASK, &none, NULL);
	look((void *)8);
	return 0;
}
