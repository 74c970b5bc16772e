/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Each stack has an array of its open calls. The array grows and shrinks with the stack, in
 * segments. The first entry of each segment is the segment's foot. The foot stands for the last
 * call of the segment before. In the stack's first segment, the foot stands for the caller of the
 * outermost call. The assembly pushes and pops calls in the usual cases. These functions handle the
 * other cases: skipped calls, interrupted entries and exits, the ends of segments, and threads
 * whose state was wiped by a fork.
 *
 * Each entry's `word` says whether the entry is free or has an open call, and is always right. The
 * address of the innermost call (`top`) is only a hint, which may be wrong after an interruption.
 * So each function searches for the innermost call, from `top` on.
 *
 * Context: hit path. A signal handler may interrupt each of these functions at any instruction. The
 * handler may run any of them itself, and then return or leave by a jump.
 */
#ifndef PB_ENGINE_GRAPH_OPEN_CALLS_H
#define PB_ENGINE_GRAPH_OPEN_CALLS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "arch/arch.h"

struct pb_open_call {
	int64_t word;		/* O_WORD: see arch/open_call.h */
	uint64_t start;
	uint32_t site;
	uint8_t state;
	uint8_t record;		/* PB_OPEN_UNKNOWN, ...: the state of the record, if the call's
				 * exit was interrupted */
	uint16_t watch;		/* which eBPF programs run at the return: the ID of their struct
				 * prog_site, or PB_WATCH_BELOW; 0: none */
	uint64_t ret;		/* the return address. In the state "closing": the slot of the hit
				 * that made C code close the call */
};
_Static_assert(sizeof(struct pb_open_call) == PB_OPEN_SIZE, "open_call.h");
_Static_assert(offsetof(struct pb_open_call, start) == O_START, "open_call.h");
_Static_assert(offsetof(struct pb_open_call, site) == O_SITE, "open_call.h");
_Static_assert(offsetof(struct pb_open_call, state) == O_STATE, "open_call.h");
_Static_assert(offsetof(struct pb_open_call, record) == O_RECORD, "open_call.h");
_Static_assert(offsetof(struct pb_open_call, watch) == O_WATCH, "open_call.h");
_Static_assert(offsetof(struct pb_open_call, ret) == O_RET, "open_call.h");
/* The `ret` of a call whose slot doesn't hold a return address. Several calls without a return
 * address may have the same slot. */
#define PB_OPEN_NO_RET	1u

struct pb_open_segment {
	struct pb_open_segment *prev, *next;	/* when the last call of `next` has ended, `next`
						 * stays for reuse */
	void *stack;		/* the calls' struct pb_stack; opaque here */
	uint32_t depth;		/* number of calls in the segments before this one */
	uint32_t final;		/* no segment may be added after this one */
	struct pb_open_call call[PB_OPEN_CALLS + 2];	/* foot, calls, end */
};
_Static_assert(sizeof(struct pb_open_segment) == PB_OPEN_SEGMENT, "one segment");
_Static_assert(offsetof(struct pb_open_segment, prev) == G_PREV, "open_call.h");
_Static_assert(offsetof(struct pb_open_segment, depth) == G_DEPTH, "open_call.h");

/* Functions that the caller supplies. The first two are called for calls that don't end by their
 * return. The other two supply the memory of segments. */
struct pb_open_hooks {
	void *context;
	/* The call was skipped: its frame is gone. */
	void (*skipped)(void *context, const struct pb_open_call *call);
	/* A handler interrupted the call's exit, and then left by a jump. (If a handler interrupts
	 * a call's entry, and then leaves by a jump, the call was never made.) */
	void (*cut)(void *context, const struct pb_open_call *call);
	/* Returns a segment, of zeros or with old contents; NULL: none is left. */
	struct pb_open_segment *(*segment)(void *context);
	/* Takes back a segment that isn't used, because a handler has just added another segment in
	 * its place. */
	void (*unused)(void *context, struct pb_open_segment *segment);
};

/* Makes a segment empty. prev: the segment before it; foot: the slot of the last call before this
 * segment. For a stack's first segment, prev is NULL and foot is the stack's end; the caller sets
 * `stack`. */
void pb_open_segment_init(struct pb_open_segment *s, struct pb_open_segment *prev, uint64_t foot);

/* Returns the 8 bytes that a new call has from O_SITE on. They are stored at once: the fast path of
 * the exit loads several of these fields at once, and after separate stores this load would take
 * longer. */
static inline uint64_t pb_open_fields(uint32_t site, uint8_t state, uint16_t watch)
{
	return site | (uint64_t)state << 8 * (O_STATE - O_SITE) |
	       (uint64_t)PB_OPEN_UNKNOWN << 8 * (O_RECORD - O_SITE) |
	       (uint64_t)watch << 8 * (O_WATCH - O_SITE);
}
/* Opens a call in `slot`: closes the calls that were skipped, claims an entry, and makes it the
 * innermost entry. The caller fills the entry, and then calls pb_open_commit(). NULL: no segment is
 * left, or handlers leave calls open faster than the function can close them. */
struct pb_open_call *pb_open_enter(struct pb_open_call **top, uint64_t slot,
				   const struct pb_open_hooks *hooks);
/* Like pb_open_enter(), for a new call whose caller `c` is the innermost call. NULL: the entry
 * after c isn't free. */
struct pb_open_call *pb_open_push(struct pb_open_call **top, struct pb_open_call *c, uint64_t slot);
void pb_open_commit(struct pb_open_call *call, uint64_t slot);
/* Returns the nearest live call before `call` in the array, or the stack's foot. */
struct pb_open_call *pb_open_parent(const struct pb_open_call *call);
/* The innermost entry that isn't free, or the stack's foot. */
struct pb_open_call *pb_open_innermost(struct pb_open_call *hint);
/* The entry after `call` in the array, whatever its state; NULL: there is none. */
struct pb_open_call *pb_open_above(struct pb_open_call *call);
/* The entry before `call` in the array. The result is never the foot of a segment, except the
 * stack's foot. */
struct pb_open_call *pb_open_below(const struct pb_open_call *call);
bool pb_open_is_live(const struct pb_open_call *call);
/* Returns whether the call's exit is under way. *slot gets the call's return slot. */
bool pb_open_is_leaving(const struct pb_open_call *call, uint64_t *slot);
static inline struct pb_open_segment *pb_open_segment_of(const struct pb_open_call *c)
{
	return (struct pb_open_segment *)((uint64_t)c & ~(PB_OPEN_SEGMENT - 1ul));
}
/* Whether c is a stack's foot, that is, the foot of the stack's first segment. */
static inline bool pb_open_is_root(const struct pb_open_call *c)
{
	return c == pb_open_segment_of(c)->call && !pb_open_segment_of(c)->prev;
}
/* Whether no other call can have the slot of c, and none is open after c in the array. False: not
 * known. slot: the slot of c, which is live or leaving. */
static inline bool pb_open_is_alone(const struct pb_open_call *c, uint64_t slot)
{
	const volatile int64_t *below = &c[-1].word, *above = &c[1].word;

	return *below > (int64_t)slot && *above == PB_OPEN_FREE;
}
/* Returns the depth of c on its stack: the number of calls before c in the array, plus one. The
 * stack's foot has depth 0. */
static inline uint32_t pb_open_depth(const struct pb_open_call *c)
{
	return pb_open_segment_of(c)->depth + (uint32_t)(c - pb_open_segment_of(c)->call);
}
/* Closes all calls whose slots lie at or below `slot`: their frames are gone. A call in `slot`
 * itself stays if other calls may have the same slot. */
void pb_open_close(struct pb_open_call **top, uint64_t slot, const struct pb_open_hooks *hooks);
/* Closes all calls, wherever their slots lie. False: interrupted code is in the middle of changing
 * a call; that call, and those before it in the array, stay. slot: the slot of the hit. */
bool pb_open_forget(struct pb_open_call **top, uint64_t slot, const struct pb_open_hooks *hooks);

/* Closes the calls in slots lower than `slot`, and calls in `slot` that don't return to `ret`.
 * Returns the call that returns through `slot` to `ret`; NULL: no such call is open, or handlers
 * leave calls open faster than the function can close them. */
struct pb_open_call *pb_open_at(struct pb_open_call **top, uint64_t slot, uint64_t ret,
				const struct pb_open_hooks *hooks);
/* Like pb_open_at(), and marks the call as leaving: its exit is under way. */
struct pb_open_call *pb_open_exit(struct pb_open_call **top, uint64_t slot, uint64_t ret,
				  const struct pb_open_hooks *hooks);
/* Frees a call that pb_open_exit() returned, once its record is written. */
void pb_open_release(struct pb_open_call **top, struct pb_open_call *call);
/* Undoes pb_open_exit(): the call is live again, because eBPF programs still wait for its return.
 * The call's state must be PB_ENTRY_PROG. */
void pb_open_keep(struct pb_open_call *call, uint64_t slot);
#endif
