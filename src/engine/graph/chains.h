/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where each stack's open calls (open_calls.h) are kept: their memory,
 * and how a forked child finds them. doc/design/open-calls.md.
 * Context: hit path, unless said otherwise.
 */
#ifndef PB_ENGINE_GRAPH_CHAINS_H
#define PB_ENGINE_GRAPH_CHAINS_H
#include <stdbool.h>
#include <stdint.h>
#include "engine/graph/open_calls.h"

struct pb_stack;
struct pb_thread;

/* Maps the memory for open calls. Without any, calls are recorded without their returns. Context:
 * start, one thread. */
void pb_chains_start(void);

/* A stack's first calls may come: it has none open. If there is no memory for them, they are
 * recorded without their returns. */
void pb_chain_begin(struct pb_stack *s);
/* In a forked child: s is new, and holds the slot. If calls were open there
 * before the fork, they are again. */
void pb_chain_inherit(struct pb_stack *s, uint64_t slot);
/* No call of it is open any more, nor will be: its memory serves another one. */
void pb_chain_end(struct pb_stack *s);
bool pb_chain_is_empty(const struct pb_stack *s);
/* There is no memory for its calls: they are recorded without their returns. */
void pb_chain_none(struct pb_stack *s);
/* The outermost call that is open on it; NULL: there is none. */
struct pb_open_call *pb_chain_first(const struct pb_stack *s);
/* The slots of the outermost and the innermost one; 0: there is none. Another
 * thread may be running there. */
uint64_t pb_chain_outermost(const struct pb_stack *s);
uint64_t pb_chain_innermost(const struct pb_thread *t, const struct pb_stack *s);
/* A thread has a state: its own stack begins, or (forked: in the child of a fork) goes on with the
 * calls that were open. */
void pb_chain_thread_begin(struct pb_thread *t, bool forked);
/* The thread is gone. */
void pb_chain_thread_end(struct pb_thread *t);

/* Exits don't find the calls that are open now. Context: the agent's thread. */
void pb_chain_forget_returns(void);
/* The stack's calls of former periods are closed. */
void pb_chain_set_period(struct pb_stack *s, uint32_t period);

/* Memory for more calls, of any stack; NULL: there is none. */
struct pb_open_segment *pb_chain_take(void *context);
void pb_chain_give(void *context, struct pb_open_segment *segment);
/* Whether it lies in that memory. */
bool pb_chain_holds(uint64_t address);
#endif
