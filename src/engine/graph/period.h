/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Periods. While no tracer uses returns, the stubs of exits lead to code that records nothing. So
 * the ends of calls aren't seen. When returns are hooked again, a new period begins. Calls that
 * were open before may be over. So at the first hit on a stack in the new period, the stack's calls
 * of former periods are closed. See doc/design/special-calls.md, "Periods".
 */
#ifndef PB_ENGINE_GRAPH_PERIOD_H
#define PB_ENGINE_GRAPH_PERIOD_H
#include "engine/graph/thread_state.h"

/* Values that a thread's `lo` has instead of the low end of its stack. With such a value, each
 * entry goes to C. So does each exit whose call isn't the innermost open call. PB_LO_UNSETTLED: the
 * thread is changing stacks. PB_LO_FORMER: the period of the thread's stack is a former one, the
 * stack's `back` is set, or the agent is latched. */
#define PB_LO_UNSETTLED		(~0ul)
#define PB_LO_FORMER		(~7ul)

/* Begins a new period. After this call, the exits' stubs may lead to code that records. Context:
 * start, or the agent's thread. */
void pb_period_begin(void);
/* Sets the `lo` of each thread to PB_LO_FORMER, except of threads that are changing stacks: they
 * set it themselves when they have changed. If the agent is latched, `lo` keeps this value.
 * Context: any. */
void pb_period_leave_fast_paths(void);
/* Sets t's `lo`, for the fast paths: the low end of its stack, or PB_LO_FORMER.
 * Context: hit path. */
void pb_period_set_lo(struct pb_thread *t);
#endif
