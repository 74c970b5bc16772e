/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread recurses into its guard page twenty times. The handler, on its alternate stack, jumps
 * out. The fault's address must be just below the stack. The agent's C code needs PB_HIT_ROOM bytes
 * of stack. If a call needs this code and has less stack, the call is counted as lost.
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
