/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes the records of calls (call_records.c). Context: hit path. */
#ifndef PB_ENGINE_GRAPH_CALL_RECORDS_H
#define PB_ENGINE_GRAPH_CALL_RECORDS_H
#include "arch/arch.h"
#include "engine/graph/chains.h"
#include "engine/graph/thread.h"

/* If set, PB_ENTRY_LAZY calls are dropped, with two exceptions: calls whose site has
 * FTRACE_FL_CALLER, and calls that lead to such a call. */
extern uint8_t pb_callers_only;

/* Points to the count of entries and returns at which eBPF programs were not run. Never NULL. */
extern uint64_t *pb_prog_missed;

/* True if a call in this state has no ENTRY yet, and no code is about to write one. */
static inline bool pb_call_is_unemitted(uint8_t state)
{
	return state == PB_ENTRY_LEAF || state == PB_ENTRY_LAZY || state == PB_ENTRY_LATE;
}

static inline bool pb_call_unemitted(const struct pb_open_call *c)
{
	return pb_call_is_unemitted(c->state);
}

/* True if c is a call that is open, and not the foot of a segment. */
static inline bool pb_call_is_open(const struct pb_open_call *c)
{
	return !pb_open_is_root(c) && pb_open_is_live(c);
}

/* Returns the call around `call` in the tree. A call that is open only for eBPF programs isn't in
 * the tree. */
static inline struct pb_open_call *pb_call_outer(const struct pb_open_call *call)
{
	struct pb_open_call *c = pb_open_parent(call);

	while (c->state == PB_ENTRY_PROG && !pb_open_is_root(c))
		c = pb_open_parent(c);
	return c;
}

/* Writes the ENTRY of c and of the calls around it that have none, outermost first. If interrupted
 * code is about to write them, does nothing and returns true. False: there is no room. In this case
 * the caller must not write records of c's callees, because readers would show these records in the
 * wrong place. */
bool pb_call_emitted(struct pb_thread *t, struct pb_open_call *c);
/* Writes the record of a call that ended at `now`, by a return or a jump. */
void pb_call_put_end(struct pb_thread *t, struct pb_open_call *c, uint64_t now, bool jump);
/* Records the end of a call that ended without a return, for example by a longjmp. context: the
 * thread. */
void pb_call_skipped(void *context, const struct pb_open_call *call);
/* Records the end of a call whose exit stub was interrupted by a signal handler that then left by a
 * jump. If the exit has reserved a word for the call's record but not written it, the word stays
 * empty. */
void pb_call_cut(void *context, const struct pb_open_call *c);

/* If it isn't NULL, it is called at the end of each call that C code ends, with the time that the
 * call took. Context: hit path. */
extern void (*pb_call_ended)(uint32_t site, uint64_t ticks);
void pb_call_report(const struct pb_open_call *c, uint64_t now);

/* The functions that open_calls.c calls when it closes calls, or needs memory for calls. */
#define PB_HOOKS(t) &(const struct pb_open_hooks){ \
	(t), pb_call_skipped, pb_call_cut, pb_chain_take, pb_chain_give }

/* Called when a signal handler has returned. The handler's calls had slots at or below `slot`.
 * Closes those of them that a jump inside the handler left open. */
void pb_calls_handler_over(struct pb_thread *t, uint64_t slot);
/* Notes in an open call how much of its record is written (record: PB_OPEN_*). Called when a
 * handler has interrupted the assembly of the call's exit. call: the call's address. It comes from
 * a register of the interrupted code, so it may be any number, and this function checks it. slot:
 * the interrupted stack pointer. */
void pb_calls_interrupted(uint64_t call, uint64_t slot, uint8_t record);
/* Closes those calls on s whose slots are at or below `slot`, by writing END for them. Does nothing
 * if a thread runs on s. */
void pb_calls_close_stack(struct pb_thread *t, struct pb_stack *s, uint64_t slot);
#endif
