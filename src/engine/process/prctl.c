/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replaces prctl (prctl.h). After some calls, a system call of the agent or a read of the clock
 * would end the program. So the agent reacts before such a call, and takes the reaction back as far
 * as possible if the call fails.
 */
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include "engine/process/prctl.h"
#include "arch/arch.h"
#include "base/dumpable.h"
#include "base/sys.h"
#include "engine/clock.h"
#include "engine/graph/thread_state.h"
#include "engine/graph/thread_words.h"
#include "engine/process/creds.h"
#include "engine/process/replace.h"
#include "engine/process/sigaction.h"
#include "engine/renew.h"
#include "engine/sandbox.h"

typedef int prctl_fn(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d);

static prctl_fn *original_prctl;

/* Without a filter, the program only asks whether filters exist. */
static bool asks_for_sandbox(int op, unsigned long a, unsigned long b)
{
	return op == PR_SET_SECCOMP && !(a == SECCOMP_MODE_FILTER && !b);
}

void pb_prctl_begins(int op, unsigned long a, unsigned long b)
{
	/* after either of these calls, reading the TSC is a fault */
	if ((op == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT) ||
	    (op == PR_SET_TSC && a == PR_TSC_SIGSEGV)) {
		pb_clock_freeze();
		pb_thread_words_changed();
	}
	/* The program uses syscall(), so the agent doesn't see whether the call succeeds. A filter
	 * may refuse it. If 1 was noted nevertheless, the process would stay dumpable. */
	if (op == PR_SET_DUMPABLE && (a == 0 || (a == 1 && !pb_sandboxed)))
		pb_dumpable_ask((uint32_t)a);
	/* a filter may forbid the return from a signal, or the system calls of die() */
	if (asks_for_sandbox(op, a, b)) {
		__atomic_fetch_add(&pb_sandboxed, 1, __ATOMIC_SEQ_CST);
		pb_sigaction_stand_down();
	}
}

/* The state belongs to the memory, so a vfork child changes its parent's, too. */
static int set_dumpable(unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	uint32_t before;
	int ret;

	do {
		before = pb_dumpable_ask((uint32_t)a);
		ret = original_prctl(PR_SET_DUMPABLE, a, b, c, d);
	} while (pb_dumpable_asked((uint32_t)a, ret, before));
	return ret;
}

/* Returns what the program would see without a stop's loan. If a loan has begun during the call, it
 * may also have ended, so the call is made again. */
static int get_dumpable(unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	uint32_t loans;
	int ret;

	do {
		loans = pb_dumpable_loans();
		if (!pb_dumpable_is_lent(&ret))
			ret = original_prctl(PR_GET_DUMPABLE, a, b, c, d);
	} while (loans != pb_dumpable_loans());
	return ret;
}

/* True in a child of vfork: it shares its parent's memory, but not the setting. */
static bool is_vfork_child(void)
{
	uint32_t pid = pb_process->pid;		/* 0: a forked child before its first hit */

	return pid && pb_calls_are_safe() && pb_sys(SYS_getpid) != pid;
}

/* The setting is noted before the call, because a stop may come right after it. */
static int set_ptracer(unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	uint64_t before = pb_program_ptracer;
	bool note = !is_vfork_child();
	int ret;

	if (note)
		pb_program_ptracer = a;
	ret = original_prctl(PR_SET_PTRACER, a, b, c, d);
	if (note && ret)
		pb_program_ptracer = before;
	return ret;
}

static int our_prctl(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	uint32_t renewals = pb_renewals;
	int ret;

	if (op == PR_SET_PTRACER)
		return set_ptracer(a, b, c, d);
	if (op == PR_SET_DUMPABLE && a <= 1)
		return set_dumpable(a, b, c, d);
	if (op == PR_GET_DUMPABLE)
		return get_dumpable(a, b, c, d);
	pb_prctl_begins(op, a, b);
	ret = original_prctl(op, a, b, c, d);
	if (!ret)
		pb_creds_prctl(op, a, b, c, d);
	else if (asks_for_sandbox(op, a, b) && renewals == pb_renewals)
		__atomic_fetch_sub(&pb_sandboxed, 1, __ATOMIC_SEQ_CST);
	return ret;
}

bool pb_prctl_hook(struct pb_module *m)
{
	return !original_prctl && pb_replace(m, "prctl", our_prctl, &original_prctl);
}
