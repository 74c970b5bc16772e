/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Periods. While no tracer uses returns, the exits' stubs lead to idle code, and the ends of calls
 * aren't seen. When returns are hooked again, a new period begins. Calls that were open before may
 * be over. So each stack closes its calls of former periods at its first hit.
 * doc/design/open-calls.md, "Periods".
 */
#ifndef PB_ENGINE_GRAPH_PERIOD_H
#define PB_ENGINE_GRAPH_PERIOD_H
#include "engine/graph/thread_state.h"

/* Values of a thread's `lo` in place of its stack's low end. They send each hit to C: while the
 * thread changes stacks, and while its stack is of a former period. */
#define PB_LO_UNSETTLED		(~0ul)
#define PB_LO_FORMER		(~7ul)

/* Begins a new period; after it the exits' stubs may lead to code that records.
 * Context: start, or the agent's thread. */
void pb_period_begin(void);
/* Sends each thread's next hit to C; once latched, all its hits. Context: any. */
void pb_period_leave_fast_paths(void);
/* Sets t's `lo`, for the fast paths: the low end of its stack, or PB_LO_FORMER.
 * Context: hit path. */
void pb_period_set_lo(struct pb_thread *t);
#endif
