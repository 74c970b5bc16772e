/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first instruction of a function faults, and the SIGSEGV handler throws. The unwinder must
 * start in the function, even if the agent's copy of the instruction faulted.
 * @flags -fnon-call-exceptions -fasynchronous-unwind-tables
 * @markers 2000 main/one_throw
 * @calls load 1000
 */
#include <signal.h>
#include <ucontext.h>
#include "../hostile.h"

struct null_pointer { void *pc; };
static volatile long frames;

static KEEP long load(const long *p) { return *p; }
static KEEP long load_deep(const long *p, int n)
{
	return n ? opaque(load_deep(p, n - 1)) + 1 : load(p) + opaque(0l);
}
static KEEP void store(long *p, long v) { *(volatile long *)p = v; }

static void on_segv(int, siginfo_t *, void *uc)
{
	throw null_pointer{ (void *)((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP] };
}

static KEEP void one_throw(int n)
{
	int caught = 0;

	try {
		if (n & 1)
			load_deep(nullptr, n % 20);
		else
			store(nullptr, n);
	} catch (const null_pointer &e) {
		caught = 1;
		if (!(n & 1))
			check(e.pc == (void *)store);
		else
			check(e.pc == (void *)load);
	}
	marker_begin(n);
	check(caught);
}

int main()
{
	struct sigaction sa = {};

	sa.sa_sigaction = on_segv;
	sa.sa_flags = SA_SIGINFO | SA_NODEFER;
	check(!sigaction(SIGSEGV, &sa, nullptr));
	for (int n = 0; n < 2000; n++)
		one_throw(n);
	puts("2000 throws from first instructions");
	return 0;
}
