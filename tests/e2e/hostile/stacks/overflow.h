/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread runs into the guard page of its stack again and again. The SIGSEGV handler runs on an
 * alternate stack and jumps back to one_overflow(). stack_guard.c and stack_overflow.c include this
 * file. They define one_overflow() and the handler.
 */
#ifndef OVERFLOW_H
#define OVERFLOW_H
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include "../hostile.h"

#define GUARD	65536

static sigjmp_buf env;
static char *volatile stack_low;	/* the stack's lowest address; the guard is below the
					 * stack */

/* Makes one round: overflows the stack, and returns after the handler's jump to `env`. */
static KEEP void one_overflow(int n);

static KEEP void *thread_main(void *rounds)
{
	stack_t ss = { .ss_sp = malloc(65536), .ss_size = 65536 };
	int n;

	check(!sigaltstack(&ss, NULL));
	for (n = 0; n < *(int *)rounds; n++)
		one_overflow(n);
	return NULL;
}

static bool in_guard(const char *address)
{
	return address < stack_low && address >= stack_low - GUARD;
}

/* Makes `rounds` rounds in a thread with a stack of `size` bytes. */
static void overflow(int rounds, size_t size, void (*on_segv)(int, siginfo_t *, void *))
{
	struct sigaction sa = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	char *m = mmap(NULL, size + GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t t;

	check(m != MAP_FAILED);
	stack_low = m + GUARD;
	check(!mprotect(stack_low, size, PROT_READ | PROT_WRITE));
	check(!sigaction(SIGSEGV, &sa, NULL));
	check(!pthread_attr_init(&attr));
	check(!pthread_attr_setstack(&attr, stack_low, size));
	check(!pthread_create(&t, &attr, thread_main, &rounds));
	check(!pthread_join(t, NULL));
}
#endif
