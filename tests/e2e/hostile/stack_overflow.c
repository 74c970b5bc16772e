/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Endless recursion into the guard page: the handler on its alternate stack
 * sees a fault just below the stack and jumps out; twenty times, in a thread.
 * Calls in the last PB_HIT_ROOM bytes that would need C code are counted as lost.
 * @markers 20 thread_main/one_overflow
 * @buffer 128M
 * @lost 2080
 */
#include "overflow.h"

static char *volatile fault;

static KEEP long endless(long n)
{
	volatile char pad[64];

	pad[0] = n;
	return opaque(endless(n + 1)) + pad[0];
}

static void on_segv(int sig, siginfo_t *si, void *uc)
{
	fault = si->si_addr;
	siglongjmp(env, 1);
}

static KEEP void one_overflow(int n)
{
	fault = NULL;
	if (!sigsetjmp(env, 1))
		endless(0);
	check(in_guard(fault));
	marker_begin(n);
}

int main(void)
{
	overflow(20, 512 << 10, on_segv);
	puts("20 overflows");
	return 0;
}
