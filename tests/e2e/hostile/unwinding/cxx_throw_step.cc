/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A call is made many times. Each time, a signal handler throws at a later instruction: in the
 * entry, the body and the exit, on fast and on slow paths. For example, an entry takes a slow path
 * if the previous exception has skipped open calls. Each time, the caller must catch exactly the
 * exception that the handler has thrown.
 *
 * @flags -fnon-call-exceptions -fno-omit-frame-pointer
 * @markers 8 main/one_round
 * @timeout 30
 * @slow none bpf-own
 */
#include <signal.h>
#include <ucontext.h>
#include "../hostile.h"

struct stepped { long at; };

static volatile long steps, wanted;
extern char __start_text_call[], __stop_text_call[];

static KEEP void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = (ucontext_t *)context;

	char *pc = (char *)uc->uc_mcontext.gregs[REG_RIP];

	/* the handler must not throw at the caller's own instructions */
	if (++steps != wanted || (pc >= __start_text_call && pc < __stop_text_call))
		return;
	uc->uc_mcontext.gregs[REG_EFL] &= ~0x100;
	throw stepped{steps};
}

static KEEP int leaf(int x) { return opaque(x) + 1; }
static KEEP int parent(int x) { return opaque(leaf(x)) + opaque(leaf(x + 1)); }
static KEEP int looks(int x) { return opaque(x) + (__builtin_return_address(0) != NULL); }
static KEEP int both(int x) { return opaque(looks(x)) + opaque(parent(x)); }

/* Calls f(x). The handler throws at step `step`; if `step` is 0, the handler doesn't throw. Returns
 * the number of steps. */
__attribute__((section("text_call")))
static KEEP long call(int (*f)(int), int x, int want, long step)
{
	sigset_t set;

	steps = 0;
	wanted = step;
	try {
		int v;

		__asm__ volatile("pushf; orl $0x100, (%%rsp); popf" : : : "memory", "cc");
		v = f(x);
		__asm__ volatile("pushf; andl $~0x100, (%%rsp); popf" : : : "memory", "cc");
		check_eq(v, want);	/* if the call has fewer than `step` steps, the handler
					 * doesn't throw */
	} catch (const stepped &s) {
		check_eq(s.at, step);
	}
	/* the handler didn't return, so its signal mask is still set */
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	check(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	return steps;
}

static const struct {
	int (*f)(int);
	int copies, more;	/* f(x) = copies * x + more */
} functions[] = { { leaf, 1, 1 }, { parent, 2, 3 }, { looks, 1, 1 }, { both, 3, 4 } };

static KEEP void one_round(int n)
{
	int k, want;
	long s, nr;

	for (k = 0; k < 4; k++) {
		want = functions[k].copies * n + functions[k].more;
		nr = call(functions[k].f, n, want, 0);
		for (s = 1 + 5 * n; s < nr && s < 700; s += 41)
			call(functions[k].f, n, want, s);
	}
	marker_begin(n);
}

int main(void)
{
	struct sigaction sa = {};
	int n;

	sa.sa_sigaction = on_trap;
	sa.sa_flags = SA_SIGINFO;
	check(!sigaction(SIGTRAP, &sa, NULL));
	for (n = 0; n < 8; n++)
		one_round(n);
	puts("8 rounds");
	return 0;
}
