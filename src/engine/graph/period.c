/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Begins periods (period.h). pb_period_begin() changes pb_period and then stores PB_LO_FORMER to
 * each thread's `lo`. This sends the thread's next entry to C. A thread may store its own `lo` at
 * the same time, and looks at pb_period afterwards. So either this thread sees the new pb_period,
 * or pb_period_begin() sees the thread's new `lo`.
 *
 * An exit first compares slot and return address with those of the innermost call. If they are
 * equal, the exit doesn't look at `lo`. A call of a former period may have had the same slot and
 * return address. So the return addresses of all open calls are cleared, too. A thread may
 * open a new call in an entry at the moment when the entry's return address is cleared. Then the
 * new call's return address is lost, so the call's exit doesn't find the call, and the call ends as
 * a skipped call.
 */
#include "engine/graph/period.h"
#include "engine/graph/chains.h"
#include "engine/latched.h"

void pb_period_set_lo(struct pb_thread *t)
{
	const struct pb_stack *s = t->stack;
	uint32_t period = __atomic_load_n(&pb_period, __ATOMIC_RELAXED);

	__atomic_store_n(&t->lo, s->period == period && !s->back ? s->lo : PB_LO_FORMER,
			 __ATOMIC_SEQ_CST);
	if (pb_unlikely(s->period != __atomic_load_n(&pb_period, __ATOMIC_SEQ_CST) ||
			__atomic_load_n(&pb_latched, __ATOMIC_SEQ_CST)))
		__atomic_store_n(&t->lo, PB_LO_FORMER, __ATOMIC_RELAXED);
}

/* A thread that is changing stacks sets its `lo` itself at the end. */
static void leave_fast_paths(struct pb_thread *t)
{
	uint64_t lo = __atomic_load_n(&t->lo, __ATOMIC_SEQ_CST);

	while (lo != PB_LO_UNSETTLED &&
	       !__atomic_compare_exchange_n(&t->lo, &lo, PB_LO_FORMER, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST))
		;
}

void pb_period_leave_fast_paths(void)
{
	for (struct pb_thread *t = NULL; pb_process && (t = pb_thread_next(t));)
		leave_fast_paths(t);
}

void pb_period_begin(void)
{
	__atomic_add_fetch(&pb_period, 1, __ATOMIC_SEQ_CST);
	pb_chain_forget_returns();
	pb_period_leave_fast_paths();
}
