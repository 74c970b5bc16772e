/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declarations that the decoder's files share. */
#ifndef PB_READER_DECODE_PRIV_H
#define PB_READER_DECODE_PRIV_H
#include "base/base.h"
#include "reader/decode.h"

/* Advances the cursor by this number of words. If some of these words aren't in memory yet (in the
 * cursor's window), skips them in the file. */
static inline void pb_cursor_consume(struct pb_cursor *c, uint32_t words)
{
	uint32_t have = c->end - c->pos;

	if (words > have) {
		uint64_t more = (uint64_t)(words - have) * 8;

		if (more > c->file_left)
			more = c->file_left;
		c->file_at += more;
		c->file_left -= more;
		words = have;
	}
	c->pos += words;
}

static inline void pb_event_set(struct pb_cursor *c, struct pb_event *ev, enum pb_event_kind kind,
			     uint32_t site, uint64_t start, uint64_t time)
{
	/* The END of a call on another stack doesn't say that the thread is there: a stack that is
	 * gone may have been looked through. If the thread is there, other events follow. */
	if (pb_unlikely(c->stack != c->shown) && kind != PB_EV_END) {
		pb_stack_switch(c->shown, c->stack);
		c->shown = c->stack;
	}
	ev->kind = kind;
	ev->flags = 0;
	ev->site = site;
	ev->depth = c->stack->base + c->stack->depth;
	ev->start = start;
	ev->time = time;
	ev->value = 0;
	ev->call = NULL;
	ev->stack = c->stack;
	ev->thread = c->thread;
	ev->pid = c->chunk.pid;
	ev->tid = c->chunk.tid;
	ev->image = c->image;
}

/* True if a call that began at `start` began in the process that forked this one. Only the first
 * thread of a process inherits calls. If the start of the process is unknown, all calls that the
 * thread's first chunk lists count as inherited. */
static inline bool pb_cursor_inherits(const struct pb_cursor *c, uint64_t start)
{
	if (c->chunk.pid != c->chunk.tid)
		return false;
	return c->born ? start < c->born : !c->chunk.seq;
}

/* Pops the innermost open call, and sets *ev to its end. The data has no record of that end. */
void pb_event_pop(struct pb_cursor *c, struct pb_event *ev, uint64_t time, uint32_t flags);
/* Sets *ev to a LOST event, which reports `count` lost calls, or lost_due calls if that is more. */
void pb_event_lost(struct pb_cursor *c, struct pb_event *ev, uint64_t count);

/* --- decode_gap.c: records are missing before a chunk --- */
/* Called when such a chunk begins, before its first record is read. Prepares the use of the chunk's
 * list of open calls. */
void pb_gap_begin(struct pb_cursor *c, const struct pb_chunk_ref *ref);

enum pb_gap { PB_GAP_GO_ON, PB_GAP_AGAIN, PB_GAP_EVENT };
/* Settles what must come before a chunk's first record: which calls are still open after a gap, and
 * how much was lost. Returns EVENT if it has set *ev, AGAIN if it has consumed a record without an
 * event, and GO_ON if nothing more has to be settled. */
enum pb_gap pb_gap_attend(struct pb_cursor *c, struct pb_event *ev);
/* True if nothing has to be settled. The next event then comes from the record at pos. */
bool pb_gap_settled(const struct pb_cursor *c);
/* True if the chunk's list has already opened the call of this ENTRY. */
bool pb_gap_opened(struct pb_cursor *c, uint32_t site, uint64_t time);
#endif
