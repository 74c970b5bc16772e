/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Periods: while nobody wants returns the exits' stubs lead to idle code, and no end of a call is
 * seen. When returns are hooked again a new period begins. What was open before may be over, so
 * each stack closes its calls of former periods at its first hit. doc/design/open-calls.md,
 * "Periods".
 */
#ifndef PB_ENGINE_GRAPH_PERIOD_H
#define PB_ENGINE_GRAPH_PERIOD_H
#include "engine/graph/thread_state.h"

/* What the low end of a thread's stack is instead, so that each hit goes to C: while the thread
 * goes to another stack; while its stack is one of a former period. */
#define PB_LO_UNSETTLED		(~0ul)
#define PB_LO_FORMER		(~7ul)

/* A new one begins; then the exits' stubs may lead to code that records.
 * Context: start, or the agent's thread. */
void pb_period_begin(void);
/* Each thread's next hit goes to C; once latched, all of them. Context: any. */
void pb_period_leave_fast_paths(void);
/* The low end of t's stack, for the fast paths: they leave a stack of a former
 * period to C. Context: hit path. */
void pb_period_set_lo(struct pb_thread *t);
#endif
