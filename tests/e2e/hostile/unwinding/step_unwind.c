/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stepped() calls functions while the processor single-steps them. At each instruction of their
 * entries and exits, the unwinder must find exactly one frame of stepped().
 *
 * @flags -fno-omit-frame-pointer
 * @markers 1
 */
#include <execinfo.h>
#include <signal.h>
#include <ucontext.h>
#include "../hostile.h"

static volatile long steps, bad;
static char *low, *high;
static void *bad_pc;
static int bad_n;

KEEP int leaf(int x) { return opaque(x) + 1; }
KEEP int middle(int x) { return opaque(leaf(x)) + opaque(leaf(x + 1)); }
KEEP int outer(int x) { return opaque(middle(x)) + 1; }
KEEP int stepped(int x);

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	void *frames[64];
	int n = backtrace(frames, 64), found = 0;

	steps++;
	for (int i = 0; i < n; i++)
		found += (char *)frames[i] >= low && (char *)frames[i] < high;
	if (found != 1 && !bad++) {
		bad_pc = (void *)uc->uc_mcontext.gregs[REG_RIP];
		bad_n = found;
	}
}

/* The assembly moves the stack pointer, so the CFA must depend on the frame pointer. */
__attribute__((optimize("no-omit-frame-pointer")))
KEEP int stepped(int x)
{
	int v;

	__asm__ volatile("pushf; orl $0x100, (%%rsp); popf" : : : "memory", "cc");
	v = outer(x) + leaf(x);
	__asm__ volatile("pushf; andl $~0x100, (%%rsp); popf" : : : "memory", "cc");
	return opaque(v);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	void *warm[4];

	low = (char *)stepped;
	high = low + 120;
	backtrace(warm, 4);
	check_eq(sigaction(SIGTRAP, &sa, NULL), 0);
	for (int i = 0; i < 20; i++)
		check_eq(stepped(i), 3 * i + 5);
	if (bad)
		die("%ld of %ld steps: at PC %p stepped() was found %d times", bad, steps, bad_pc,
		    bad_n);
	check(steps > 100);
	marker_begin(1);
	puts("every step unwinds");
	return 0;
}
