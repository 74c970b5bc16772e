/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A loan and the program's own prctl(PR_SET_DUMPABLE) may come at the same time, in two threads or
 * processes that share the memory. No lock orders them. The word `loan` says whether there is a
 * loan, how many there have been, and which value the program has set or is about to set.
 *
 *   - The program notes its value before its call. If the number of loans has changed after the
 *     call, the beginning or the end of a loan may have overwritten the program's value. So the
 *     program's thread begins anew.
 *   - The end of a loan sets 0, unless the program's value is 1. Then it looks at the word again.
 *     If the value has changed, the program may have made its call before. So the loan sets the
 *     program's value, until the word stays.
 *
 * So the value that the program has set last is also the kernel's last value. A noted 0 doesn't
 * mean that the state is 0: the beginning of the loan may come after the program's call, the call
 * may fail, or a child may be forked before the call. So the end of the loan sets 0 also then.
 */
#include <sys/prctl.h>
#include "base/dumpable.h"
#include "base/ptrace_right.h"
#include "base/sys.h"

/* the bits of `loan` */
#define LENT	1u	/* the process is dumpable only until the end of the loan */
#define ASKED	2u	/* since the beginning of the last loan, if there was one, the program has
			 * set VALUE, or is about to */
#define VALUE	4u	/* the program's value; without ASKED, 0 */
#define ONE	8u	/* the upper bits are the number of loans that have begun */

static uint32_t loan;
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

static uint32_t load(void)
{
	return __atomic_load_n(&loan, __ATOMIC_SEQ_CST);
}

static bool change(uint32_t *from, uint32_t to)
{
	return __atomic_compare_exchange_n(&loan, from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

static uint32_t with_value(uint32_t word, uint32_t value)
{
	return (word & ~VALUE) | ASKED | (value ? VALUE : 0);
}

void pb_dumpable_lend(void)
{
	uint32_t now = load();
	int value;

	if (is_dumpable(&value) || pb_ptrace_right_held())
		return;
	without_loan = value;
	while (!change(&now, ((now & -ONE) + ONE) | LENT))
		;
	if (is_dumpable(&value)) {
		/* by a call of the program that has just ended: there is no loan */
		__atomic_and_fetch(&loan, -ONE, __ATOMIC_SEQ_CST);
		return;
	}
	set(1);
}

/* zeroed: the state may be 0 although the program has set 1. */
static void end_loan(bool zeroed)
{
	uint32_t now = load();

	if (!(now & LENT))
		return;
	/* prctl() can't set 2. 0 also forbids a core. The word is changed only afterwards, so that
	 * a child that is forked in between calls this function with effect */
	do {
		if (!(now & VALUE)) {
			set(0);
			zeroed = true;
		} else if (zeroed) {
			set(1);
		}
	} while (!change(&now, now & ~LENT));
}

void pb_dumpable_return(void)
{
	end_loan(false);
}

uint32_t pb_dumpable_fork_begins(void)
{
	return load();
}

void pb_dumpable_forked(uint32_t before)
{
	if ((before & LENT) || ((load() ^ before) & -ONE))
		__atomic_or_fetch(&loan, LENT, __ATOMIC_SEQ_CST);
	end_loan(false);
}

uint32_t pb_dumpable_ask(uint32_t value)
{
	uint32_t now = load();

	while (!change(&now, with_value(now, value)))
		;
	return now;
}

bool pb_dumpable_asked(uint32_t value, bool failed, uint32_t before)
{
	uint32_t asked = with_value(before, value), ended = asked & ~LENT;

	if (!failed)
		return (load() ^ before) & -ONE;
	/* if the loan has ended meanwhile, it has taken the noted value for the program's: it ends
	 * again */
	if (!change(&asked, before) && before & LENT && change(&ended, before))
		end_loan(true);
	return false;
}

bool pb_dumpable_is_lent(int *value)
{
	uint32_t now = load();

	*value = now & ASKED ? !!(now & VALUE) : without_loan;
	return now & LENT;
}

uint32_t pb_dumpable_loans(void)
{
	return load() / ONE;
}
