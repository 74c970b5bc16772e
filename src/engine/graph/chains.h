/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory for the open calls of each stack (open_calls.h). The segments of one stack are its
 * chain. The memory survives a fork, so a forked child finds in it the calls that were open at the
 * fork. See doc/design/open-calls.md.
 * Context: hit path, unless a comment says otherwise.
 */
#ifndef PB_ENGINE_GRAPH_CHAINS_H
#define PB_ENGINE_GRAPH_CHAINS_H
#include <stdbool.h>
#include <stdint.h>
#include "engine/graph/open_calls.h"

struct pb_stack;
struct pb_thread;

/* Maps the memory for open calls. Without this memory, calls are recorded without their returns.
 * Context: start, one thread. */
void pb_chains_start(void);
/* Unmaps a part of this memory that was never used, if `limit` is a new limit of the program
 * (RLIMIT_AS or RLIMIT_DATA). Context: not on a hit; one thread at a time, and not during
 * pb_chains_leave(). */
void pb_chains_limit(uint64_t limit);
/* Unmaps this memory. It is address space that a limit of the program (RLIMIT_AS) would count.
 * Context: the end of a detach. No thread is in the agent's code, and no call is hooked. */
void pb_chains_leave(void);

/* Gets memory for the first calls of a stack that has no open calls. If no memory is left, the
 * stack's calls are recorded without their returns. */
void pb_chain_begin(struct pb_stack *s);
/* Returns whether this is a forked child, an ancestor knew a stack that holds the slot, and no hit
 * of the child has come to this stack yet. */
bool pb_chain_is_left(uint64_t slot);
/* If pb_chain_is_left(), gives the new stack s the bounds and the open calls of that stack.
 * Otherwise does nothing. */
void pb_chain_inherit(struct pb_stack *s, uint64_t slot);
/* Returns whether pb_chain_inherit() may still need what an ancestor has left in the place of the
 * free entry s. If s gets calls of its own, this is overwritten. */
bool pb_chain_is_reserved(const struct pb_stack *s);
/* Must be called when the bounds of s have changed, so that forked children know the new ones. */
void pb_chain_set_bounds(const struct pb_stack *s);
/* Gives back the memory of a stack on which no call is open any more. */
void pb_chain_end(struct pb_stack *s);
bool pb_chain_is_empty(const struct pb_stack *s);
/* Marks a stack as having no memory for open calls: its calls are recorded without their
 * returns. */
void pb_chain_none(struct pb_stack *s);
/* The outermost call that is open on the stack; NULL: there is none. */
struct pb_open_call *pb_chain_first(const struct pb_stack *s);
/* These functions return the slot of the outermost and of the innermost open call on s; 0: there is
 * none, or the call begins or ends at this moment. t: the thread that was on s last, or NULL. This
 * thread may be running on s now. */
uint64_t pb_chain_outermost(const struct pb_stack *s);
uint64_t pb_chain_innermost(const struct pb_thread *t, const struct pb_stack *s);
/* In a forked child, gives the own stack of the thread that forked the bounds that it had before
 * the fork. The thread's first hit may be on another stack, so its slot doesn't show where the own
 * stack is. False: before the fork, the thread's state wasn't complete. */
bool pb_chain_own_bounds(struct pb_thread *t);
/* Called when a thread has got its state, and the bounds of its own stack are known: sets up the
 * calls of this stack. forked: this is a forked child, and the calls that were open on that stack
 * stay open. */
void pb_chain_thread_begin(struct pb_thread *t, bool forked);
/* Called when the thread t is gone. Gives back the memory for the calls of its own stack. */
void pb_chain_thread_end(struct pb_thread *t);

/* Clears the return addresses of all open calls that have one, so that no exit finds these calls.
 * Context: the agent's thread. */
void pb_chain_forget_returns(void);
/* Sets the period (period.h) to which the stack's open calls belong. Called after the stack's calls
 * of former periods were closed. */
void pb_chain_set_period(struct pb_stack *s, uint32_t period);

/* Takes a segment, for the calls of any stack; NULL: none is left. pb_chain_give() gives the
 * segment back. Both functions ignore `context`. */
struct pb_open_segment *pb_chain_take(void *context);
void pb_chain_give(void *context, struct pb_open_segment *segment);
/* Whether the address lies in the memory for open calls. */
bool pb_chain_holds(uint64_t address);
#endif
