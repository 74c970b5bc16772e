/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The assembly of the hit path reads five variables of the agent: the three of this file, and
 * pb_no_clock and pb_frozen_clock (engine/clock.h). Copies of this assembly lie near modules
 * (arch/arch.h), out of reach of the agent's variables. So each thread's state has copies of the
 * variables.
 */
#ifndef PB_ENGINE_GRAPH_THREAD_WORDS_H
#define PB_ENGINE_GRAPH_THREAD_WORDS_H
#include "engine/graph/thread_state.h"

/* The largest depth, within a stack, at which calls are recorded; 0: nothing is recorded. */
extern uint32_t pb_max_depth;
#define PB_NO_MAX_DEPTH	PB_DEPTH_MAX
/* PB_ENTRY_LAZY calls that take less than this time (in clock units) are dropped. */
extern uint64_t pb_thresh;
/* Set when eBPF programs for returns are loaded, or before the first call is opened that isn't in
 * the tree of calls. While it isn't set, no live call has the state PB_ENTRY_PROG. */
extern bool pb_calls_watching;

/* Called after one of the variables was changed: copies them to the states of all threads. Context:
 * any. */
void pb_thread_words_changed(void);
/* Copies the variables to the state of a new thread. Context: hit path. */
void pb_thread_words_copy(struct pb_thread *t);
#endif
