/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stacks that threads run on: their own, and those that the program told
 * (makecontext, sigaltstack) or that are guessed at the first hit on them.
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

/* Nothing below it is the stack's to use; 0: its bounds are guessed. Whether the first page of a
 * reported one is a guard isn't known. */
static inline uint64_t pb_stack_bottom(const struct pb_stack *s)
{
	return !s->exact ? 0 : s->id >> 63 ? s->lo + s->guard : s->lo;
}

static inline bool pb_stack_holds(const struct pb_stack *s, uint64_t address)
{
	return address - s->lo < s->hi - s->lo;
}

/* The stack that holds `slot`, if it is another one than t's present one (*gone:
 * one that is no longer there, to be closed and dropped); and t goes on there. */
struct pb_stack *pb_thread_other_stack(struct pb_thread *t, uint64_t slot, struct pb_stack **gone);
/* The same without regard of where t is. A new one if need be; NULL: there is
 * no place for it. stack_find.c. */
struct pb_stack *pb_stack_find(struct pb_thread *t, uint64_t slot, struct pb_stack **gone);
/* Whatever pb_stack_find() has found before is looked for again. */
void pb_stack_forget_found(void);
/* slot: of the hit. False: it isn't to be used any more, or another thread is
 * there; t is where it was. */
bool pb_thread_use_stack(struct pb_thread *t, struct pb_stack *s, uint64_t slot);
/* t goes on where calls are recorded without their returns, as there is no
 * place for the stack at the slot. */
void pb_thread_no_stack(struct pb_thread *t, uint64_t slot);
/* A stack with guessed bounds that isn't filled yet; NULL: there is no place. */
struct pb_stack *pb_stack_take(uint64_t lo, uint64_t hi);
void pb_stack_set_filled(struct pb_stack *s);
/* Another thread was there last, and nothing says that the slot is on the same stack: it may be a
 * neighbouring one, within bounds that were guessed wrongly. */
bool pb_stack_is_anothers(const struct pb_thread *t, const struct pb_stack *s, uint64_t slot);
/* t goes to a stack on which nobody runs, and back, to close the calls that were
 * left there; between them no thread comes to it. false: one did. */
bool pb_stack_visit(struct pb_thread *t, struct pb_stack *s);
void pb_stack_leave(struct pb_thread *t, struct pb_stack *s, struct pb_stack *back);

/* t goes back to a stack that a signal handler went away from: unless somebody
 * else came to it since. */
bool pb_stack_return(struct pb_thread *t, struct pb_stack *s, uint64_t slot);

/* One behind `after` (NULL: the first) that has some of [lo, hi); NULL: none. Not
 * threads' own. */
struct pb_stack *pb_stack_overlapping(struct pb_stack *after, uint64_t lo, uint64_t hi);
/* No thread runs on it, as far as is known. */
bool pb_stack_is_idle(const struct pb_stack *s);
/* Nobody's from now on, unless a thread just came to it: its memory is gone, or
 * another stack's. */
void pb_stack_drop(struct pb_stack *s);
/* Stacks whose memory is gone, or serves something else, are found and closed
 * once there are many. stack_gone.c */
void pb_stacks_look(struct pb_thread *t);
/* There is a stack there, without any call; t is the calling thread. */
void pb_stack_add(struct pb_thread *t, uint64_t lo, uint64_t hi);
#endif
