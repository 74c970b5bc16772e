/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stacks that threads run on: their own, those that the program reported
 * (makecontext, sigaltstack), and those that are guessed at the first hit on them.
 * doc/design/open-calls.md, "Threads and stacks". Context: hit path.
 */
#ifndef PB_ENGINE_GRAPH_STACK_H
#define PB_ENGINE_GRAPH_STACK_H
#include <stdbool.h>
#include <stdint.h>
#include "engine/graph/thread_state.h"

static inline bool pb_stack_is_filled(const struct pb_stack *s)
{
	return __atomic_load_n(&s->id, __ATOMIC_ACQUIRE) >= PB_STACK_FILLED;
}

/* The lowest address that the stack may use; 0: its bounds are guessed. The first page of a
 * reported stack may be a guard page nevertheless. */
static inline uint64_t pb_stack_bottom(const struct pb_stack *s)
{
	return !s->exact ? 0 : s->id >> 63 ? s->lo + s->guard : s->lo;
}

static inline bool pb_stack_holds(const struct pb_stack *s, uint64_t address)
{
	return address - s->lo < s->hi - s->lo;
}

/* The stack that holds `slot`, to which t is to go. NULL: t is on it already, or
 * pb_thread_no_stack() was called. *gone: a stack that no longer exists, to be closed and
 * dropped; or NULL. */
struct pb_stack *pb_thread_other_stack(struct pb_thread *t, uint64_t slot, struct pb_stack **gone);
/* The stack that holds `slot`, whichever stack t is on; made if there is none. NULL: there is
 * no place for it. *gone is set if a stack no longer exists, else unchanged. stack_find.c. */
struct pb_stack *pb_stack_find(struct pb_thread *t, uint64_t slot, struct pb_stack **gone);
/* Empties the cache of pb_stack_find(). */
void pb_stack_forget_found(void);
/* t goes to s. slot: the hit's. False: s is being closed or dropped, or another thread is on it; t
 * stays where it was. */
bool pb_thread_use_stack(struct pb_thread *t, struct pb_stack *s, uint64_t slot);
/* There is no place for the stack at the slot: until t goes to another stack, its calls
 * are recorded without their returns. */
void pb_thread_no_stack(struct pb_thread *t, uint64_t slot);
/* Takes an entry for a stack with guessed bounds. It counts as filled only after
 * pb_stack_set_filled(). NULL: there is no place. */
struct pb_stack *pb_stack_take(uint64_t lo, uint64_t hi);
void pb_stack_set_filled(struct pb_stack *s);
/* Whether another thread was on s last, and nothing shows that the slot is on the same stack. If
 * the bounds of s were guessed wrongly, the slot may be on a neighbouring stack. */
bool pb_stack_is_anothers(const struct pb_thread *t, const struct pb_stack *s, uint64_t slot);
/* t goes to a stack on which no thread runs, to close the calls that were left there. Until
 * pb_stack_leave(), by which t goes back, no other thread comes to that stack. False: it can't
 * be visited. */
bool pb_stack_visit(struct pb_thread *t, struct pb_stack *s);
void pb_stack_leave(struct pb_thread *t, struct pb_stack *s, struct pb_stack *back);

/* t goes back to the stack that it was on before a signal handler. False: another thread has come
 * to that stack since. */
bool pb_stack_return(struct pb_thread *t, struct pb_stack *s, uint64_t slot);

/* The next stack after `after` (NULL: the first) that overlaps [lo, hi); NULL: none.
 * Threads' own stacks are left out. */
struct pb_stack *pb_stack_overlapping(struct pb_stack *after, uint64_t lo, uint64_t hi);
/* Whether no thread is known to run on s. */
bool pb_stack_is_idle(const struct pb_stack *s);
/* Frees the entry of a stack whose memory is gone or belongs to another stack, unless a
 * thread has just come to it. */
void pb_stack_drop(struct pb_stack *s);
/* Once there are many new stacks: finds and closes the stacks whose memory is gone or serves
 * something else. stack_gone.c. */
void pb_stacks_look(struct pb_thread *t);
/* Adds a stack with exact bounds and without open calls. t: the calling thread. */
void pb_stack_add(struct pb_thread *t, uint64_t lo, uint64_t hi);
#endif
