/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stacks that threads run on. There are three kinds: threads' own stacks, stacks that the
 * program reported (makecontext, sigaltstack), and stacks whose bounds are guessed at the first
 * hit. To move a thread to a stack means to note in the thread's state that the thread is on this
 * stack. See doc/design/open-calls.md, "Threads and stacks". Context: hit path.
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

/* Returns the lowest address that the stack may use; 0: its bounds are guessed. The size of the
 * guard is known only for a thread's own stack (the highest bit of its `id` is set). For a stack
 * that the program reported, the result is the stack's low end, although the first page may be a
 * guard page. */
static inline uint64_t pb_stack_bottom(const struct pb_stack *s)
{
	return !s->exact ? 0 : s->id >> 63 ? s->lo + s->guard : s->lo;
}

static inline bool pb_stack_holds(const struct pb_stack *s, uint64_t address)
{
	return address - s->lo < s->hi - s->lo;
}

/* Returns the stack that holds `slot`. This function doesn't move t to that stack: the caller must
 * call pb_thread_use_stack(). NULL: t is already on it, or pb_thread_no_stack() was called. *gone
 * gets NULL, or a stack that no longer exists. The caller must close that stack's calls, and drop
 * the stack. */
struct pb_stack *pb_thread_other_stack(struct pb_thread *t, uint64_t slot, struct pb_stack **gone);
/* Returns the stack that holds `slot`, whichever stack t is on. If the table has no such stack,
 * adds one. NULL: the table is full. If the search meets a stack that no longer exists, *gone is
 * set to that stack; otherwise *gone stays unchanged. See stack_find.c. */
struct pb_stack *pb_stack_find(struct pb_thread *t, uint64_t slot, struct pb_stack **gone);
/* Empties the cache of pb_stack_find(). */
void pb_stack_forget_found(void);
/* Notes in the state of t that t is on stack s, where t has a hit. slot: the hit's slot. False: s
 * is being closed or dropped, or another thread is on it. In this case the state still names the
 * stack that it named before. */
bool pb_thread_use_stack(struct pb_thread *t, struct pb_stack *s, uint64_t slot);
/* Called if the table of stacks has no free entry for the stack that holds the slot. Until t goes
 * to another stack, the calls of t are recorded without their returns. */
void pb_thread_no_stack(struct pb_thread *t, uint64_t slot);
/* Takes an entry of the table of stacks. exact: the bounds were reported, not guessed. The caller
 * must then call pb_stack_set_filled(): searches ignore the entry until then. NULL: the table is
 * full. */
struct pb_stack *pb_stack_take(uint64_t lo, uint64_t hi, bool exact);
/* Gives the stack an id. t: the calling thread. */
void pb_stack_set_filled(const struct pb_thread *t, struct pb_stack *s);
/* Decides whether a hit of t is on s, or on a neighbour of s. Guessed bounds may include a part of
 * a neighbouring stack. slot: the hit's slot, in the bounds of s or near them. other: the thread
 * that was on s last, or NULL.
 *
 * Returns true if s must stay with `other`, so the hit is on the neighbour. False if the bounds of
 * s are exact, or s is t's own stack, or `other` is NULL or t. In all other cases, the slots of the
 * calls that are open on s decide:
 *
 *   `other` runs on s: true, unless the slot is one of them or lies between them
 *   `other` has left s: true if the slot is more than CONTINUES (stack_table.c) bytes above or
 *   below all of them
 *   no slot is known: true if `other` runs on s, or a call begins or ends there at this moment
 */
bool pb_stack_belongs_to(const struct pb_thread *other, const struct pb_thread *t,
			 const struct pb_stack *s, uint64_t slot);
static inline bool pb_stack_is_anothers(const struct pb_thread *t, const struct pb_stack *s,
					uint64_t slot)
{
	return pb_stack_belongs_to(s->thread, t, s, slot);
}
/* Sets the state of t to a stack on which no thread runs, so that t can close the calls that were
 * left there. pb_stack_leave() sets the state back. Until then, no other thread comes to that
 * stack. False: the stack can't be visited. */
bool pb_stack_visit(struct pb_thread *t, struct pb_stack *s);
void pb_stack_leave(struct pb_thread *t, struct pb_stack *s, struct pb_stack *back);
/* While t->visiting is set: whether a hit with this slot shows that a handler has left the visit by
 * a jump. If so, the caller must call pb_stack_end_visit(), which makes the visited stack usable
 * again. That function must also be called when t is dead. */
bool pb_stack_visit_was_left(const struct pb_thread *t, uint64_t slot);
void pb_stack_end_visit(struct pb_thread *t);

/* Sets the state of t back to the stack s, on which t was before a signal handler. False: since
 * then another thread has come to s, or s is being closed or was dropped. */
bool pb_stack_return(struct pb_thread *t, struct pb_stack *s, uint64_t slot);

/* Returns the next stack after `after` in the table that overlaps [lo, hi); NULL: there is none. If
 * `after` is NULL, returns the first stack that overlaps. Threads' own stacks are left out. */
struct pb_stack *pb_stack_overlapping(struct pb_stack *after, uint64_t lo, uint64_t hi);
/* Whether no thread is known to run on s. */
bool pb_stack_is_idle(const struct pb_stack *s);
/* Frees the entry of a stack whose memory is gone or belongs to another stack, unless calls are
 * open on the stack or a thread has just come to it. */
void pb_stack_drop(struct pb_stack *s);
/* If there are many new stacks, looks for stacks that are gone, closes their calls, and frees their
 * entries. See stack_gone.c. */
void pb_stacks_look(struct pb_thread *t);
/* Called when a call of t has ended. An unseen handler may have brought t to its alternate stack.
 * If no call is open there any more, sets the state of t back to the stack that the handler
 * interrupted. Without this, interrupted code of the hit path would continue with the wrong
 * stack. */
void pb_stack_go_back(struct pb_thread *t, uint64_t slot);
/* Adds a stack with exact bounds and without open calls. t: the calling thread. alternate: the
 * stack is t's alternate stack from now on. */
void pb_stack_add(struct pb_thread *t, uint64_t lo, uint64_t hi, bool alternate);
/* Notes that t has no alternate stack any more. */
void pb_stack_no_alternate(struct pb_thread *t);
/* Called when the calling thread has disabled its alternate stack. */
void pb_stack_disabled(void);
#endif
