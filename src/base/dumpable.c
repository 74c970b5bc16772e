/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A loan and the program's own prctl(PR_SET_DUMPABLE) may come at the same time, in two threads or
 * processes that share the memory. No lock orders them. Instead, each side sets the kernel's state,
 * and then looks at the word `loan` again:
 *
 *   - The program stores ASKED + value before its call. If the word isn't ASKED after the call, a
 *     loan has begun meanwhile. Its beginning or its end may have overwritten the program's value,
 *     so the program's thread begins anew.
 *   - If a loan sets the kernel's state, and finds ASKED + value afterwards, the program may have
 *     made its call before. So the loan sets the program's value.
 *
 * So the value that the program has set last is also the kernel's last value.
 */
#include <sys/prctl.h>
#include "base/dumpable.h"
#include "base/ptrace_right.h"
#include "base/sys.h"

enum {
	NONE,
	LENT,		/* the process is dumpable only until the end of the loan */
	ASKED,		/* ASKED + value: after the beginning of the last loan, if there was one,
			 * the program has set this value, or is about to */
};

static uint32_t loan;
static uint32_t nr_loans;
static int without_loan;	/* the state before the loan */

static void set(uint32_t value)
{
	pb_sys(SYS_prctl, PR_SET_DUMPABLE, value, 0, 0, 0);
}

/* With the value 2, only root may trace the process. */
static bool is_dumpable(int *value)
{
	*value = (int)pb_sys(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0);
	return *value && *value != 2;
}

static bool change(uint32_t *from, uint32_t to)
{
	return __atomic_compare_exchange_n(&loan, from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

void pb_dumpable_lend(void)
{
	uint32_t now = LENT;
	int value;

	if (is_dumpable(&value) || pb_ptrace_right_held())
		return;
	without_loan = value;
	__atomic_add_fetch(&nr_loans, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&loan, LENT, __ATOMIC_SEQ_CST);
	if (is_dumpable(&value)) {
		/* by a call of the program that has just ended */
		change(&now, NONE);
		return;
	}
	set(1);
	now = __atomic_load_n(&loan, __ATOMIC_SEQ_CST);
	if (now >= ASKED)
		set(now - ASKED);
}

void pb_dumpable_return(void)
{
	uint32_t now = __atomic_load_n(&loan, __ATOMIC_SEQ_CST);

	if (now != LENT)
		return;
	/* prctl() can't set 2. 0 also forbids a core. The word is changed only afterwards, so that
	 * a child that is forked in between calls this function with effect */
	set(0);
	if (!change(&now, NONE) && now >= ASKED)
		set(now - ASKED);
}

uint32_t pb_dumpable_ask(uint32_t value)
{
	return __atomic_exchange_n(&loan, ASKED + value, __ATOMIC_SEQ_CST);
}

bool pb_dumpable_asked(uint32_t value, bool failed, uint32_t before)
{
	uint32_t asked = ASKED + value;

	if (!failed)
		return __atomic_load_n(&loan, __ATOMIC_SEQ_CST) < ASKED;
	/* if the loan has ended meanwhile, it has left the state alone */
	if (change(&asked, before) && before == LENT)
		pb_dumpable_return();
	return false;
}

bool pb_dumpable_is_lent(int *value)
{
	*value = without_loan;
	return __atomic_load_n(&loan, __ATOMIC_SEQ_CST) == LENT;
}

uint32_t pb_dumpable_loans(void)
{
	return __atomic_load_n(&nr_loans, __ATOMIC_SEQ_CST);
}
