/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Uses a chunk's list of open calls. If records are missing before the chunk, the stack may have
 * changed in the gap. The list shows which calls are open after the gap.
 */
#include <unistd.h>

#include "abi/record.h"
#include "reader/decode_priv.h"
#include "reader/record_table.h"

/* The OPEN records at a chunk's start. */
struct list {
	struct { uint64_t start; uint32_t site; } call[PB_CHUNK_OPEN_MAX];
	uint32_t listed, nr;		/* nr: the same as `listed`, or one less if the last listed
					 * call isn't open yet */
};

/* Reads the list. If the chunk was opened to write the ENTRY of a call, the list may end with that
 * call. The call isn't open before its ENTRY. */
static void read_list(struct pb_cursor *c, const struct pb_chunk_ref *ref, struct list *l)
{
	/* room for all records that may begin a chunk, and for one ENTRY after these records */
	uint64_t words[PB_CHUNK_OPEN_MAX * PB_EXT_OPEN_WORDS + PB_EXT_LOST_WORDS +
		       PB_EXT_TIME_WORDS + 1];
	size_t bytes = ref->used < sizeof(words) ? ref->used : sizeof(words);
	uint64_t offset;
	int fd = pb_data_chunk_file(c->data, ref, &offset);
	ssize_t n = pread(fd, words, bytes, (off_t)(offset + sizeof(struct pb_chunk))), i;

	l->listed = 0;
	for (i = 0; i + 1 < n / 8; i += 2) {
		unsigned head = words[i] & 0xffff;

		if (head == pb_ext_record(OPEN, 0, 0)) {
			if (l->listed == PB_CHUNK_OPEN_MAX)
				break;
			l->call[l->listed].site = words[i] >> PB_EXT_SITE_SHIFT & PB_SITE_MASK;
			l->call[l->listed++].start = words[i + 1];
		} else if (head != pb_ext_record(LOST, 0, 0) &&
			   head != pb_ext_record(TIME, 0, 0)) {
			break;
		}
	}
	l->nr = l->listed;
	if (l->nr && i < n / 8 &&
	    words[i] == (l->call[l->nr - 1].start << PB_TIME_SHIFT |
			 (uint64_t)l->call[l->nr - 1].site << PB_SITE_SHIFT | PB_TAG_ENTRY))
		l->nr--;
}

/* A call of the list is known if the decoder's stack has the call. This function finds the unknown
 * calls that have a known call after them in the list. A signal handler interrupted each of them
 * before its ENTRY was written. attend_open() skips the OPEN records of these calls: either the
 * ENTRY comes later, or the ENTRY was lost and the call is not counted. */
static void find_unwritten(struct pb_cursor *c, const struct list *l)
{
	const struct pb_call_stack *s = c->stack;
	uint32_t seen = c->open_seen;

	c->open_at = 0;
	c->open_unwritten[0] = c->open_unwritten[1] = 0;
	for (uint32_t i = 0; i < l->nr && seen < s->depth; i++) {
		const struct pb_open_call *known = &s->calls[seen];
		uint32_t n = i;

		while (n < l->nr &&
		       (l->call[n].site != known->site || l->call[n].start != known->start))
			n++;
		if (n == l->nr)
			return;
		for (; i < n; i++)
			c->open_unwritten[i / 64] |= 1ull << i % 64;
		seen++;
	}
}

/* Called after a gap. Finds which of the stack's open calls is the first call of the list. If the
 * list isn't full, it has all open calls whose ENTRY was written, so it begins with the outermost
 * call. A full list has only the innermost of these calls. The header's `depth` counts all of them,
 * and may also count calls whose ENTRY wasn't written. */
void pb_gap_begin(struct pb_cursor *c, const struct pb_chunk_ref *ref)
{
	struct pb_call_stack *s = c->stack;
	uint32_t depth = c->chunk.depth, outer;
	struct list l;

	read_list(c, ref, &l);
	outer = l.listed >= PB_CHUNK_OPEN_MAX && depth > l.listed ? depth - l.listed : 0;
	c->open_left = l.nr;
	c->base_of = NULL;
	if (outer > PB_MAX_SITES)
		outer = 0;
	if (s->base <= outer && outer - s->base <= s->depth) {
		c->open_seen = outer - s->base;
	} else {
		c->open_seen = 0;
		c->base_of = s;
		c->base_due = outer;
	}
	find_unwritten(c, &l);
}

void pb_event_pop(struct pb_cursor *c, struct pb_event *ev, uint64_t time, uint32_t flags)
{
	struct pb_open_call *call = &c->stack->calls[--c->stack->depth];

	pb_event_set(c, ev, PB_EV_END, call->site, call->start, time);
	ev->call = call;
	ev->flags = flags;
}

void pb_event_lost(struct pb_cursor *c, struct pb_event *ev, uint64_t count)
{
	if (count < c->lost_due)
		count = c->lost_due;
	pb_event_set(c, ev, PB_EV_LOST, 0, 0, c->last);
	ev->value = count;
	if (c->gap_due)
		ev->flags = PB_EV_GAP;
	c->lost_seen += count;
	c->lost_due = 0;
	c->gap_due = false;
}

/* Called when all calls that have ended in the gap are popped. `start` is the start of the list's
 * first call, or the time of the last record if the list is empty. */
static void change_base(struct pb_cursor *c, uint64_t start)
{
	struct pb_call_stack *s = c->base_of;

	if (!s)
		return;
	s->base = c->base_due;
	s->base_inherited = s->base && pb_cursor_inherits(c, start);
	c->base_of = NULL;
}

/* Handles the OPEN record at pos, or skips it if it must not be used. If the record agrees with the
 * stack's next call, that call is still open. If it disagrees, the stack's next call and all calls
 * inside it have ended. Each of these calls gives one event. After these events, the record's call
 * is opened. */
static enum pb_gap attend_open(struct pb_cursor *c, struct pb_event *ev)
{
	struct pb_call_stack *s = c->stack;
	uint64_t word = c->window[c->pos], start = c->window[c->pos + 1];
	uint32_t site = word >> PB_EXT_SITE_SHIFT & PB_SITE_MASK;
	struct pb_open_call *call;

	if (!c->open_left || c->open_unwritten[c->open_at / 64 % 2] >> c->open_at % 64 & 1) {
		c->open_left -= c->open_left != 0;
		c->open_at++;
		pb_cursor_consume(c, pb_ext_len_of(word));
		return PB_GAP_AGAIN;
	}
	if (c->open_seen < s->depth && s->calls[c->open_seen].site == site &&
	    s->calls[c->open_seen].start == start) {
		c->open_seen++;
		c->open_left--;
		c->open_at++;
	} else if (c->open_seen < s->depth) {
		pb_event_pop(c, ev, c->last, PB_EV_GAP);
		return PB_GAP_EVENT;
	} else {
		change_base(c, start);
		pb_event_set(c, ev, PB_EV_OPEN, site, start, c->last);
		c->open_left--;
		c->open_at++;
		call = ev->call = pb_stack_push(s, site, start);
		if (call)
			call->elsewhere = c->data->whole;
		c->opened = s->depth;
		c->opened_on = s;
		if (pb_cursor_inherits(c, start))
			ev->flags = PB_EV_INHERITED;
		c->open_seen++;
		pb_cursor_consume(c, pb_ext_len_of(word));
		return call ? PB_GAP_EVENT : PB_GAP_AGAIN;
	}
	pb_cursor_consume(c, pb_ext_len_of(word));
	return PB_GAP_AGAIN;
}

/* Returns the type of the EXT record at pos, or 0 if the record is not an EXT record. */
static unsigned ext_type(const struct pb_cursor *c)
{
	uint64_t word = c->window[c->pos];

	return word & PB_TAG_MASK ? 0 : pb_ext_type_of(word);
}

bool pb_gap_settled(const struct pb_cursor *c)
{
	unsigned type = ext_type(c);

	if (c->gap && (type == PB_EXT_OPEN || c->stack->depth > c->open_seen))
		return false;
	return type == PB_EXT_LOST || !(c->lost_due || c->gap_due);
}

enum pb_gap pb_gap_attend(struct pb_cursor *c, struct pb_event *ev)
{
	struct pb_call_stack *s = c->stack;
	unsigned type = ext_type(c);

	if (c->gap && type == PB_EXT_OPEN)
		return attend_open(c, ev);
	if (c->gap) {
		if (s->depth > c->open_seen) {
			pb_event_pop(c, ev, c->last, PB_EV_GAP);
			return PB_GAP_EVENT;
		}
		change_base(c, c->last);
		c->gap = false;
	}
	if (type != PB_EXT_LOST && (c->lost_due || c->gap_due)) {
		pb_event_lost(c, ev, 0);
		c->attention = false;
		return PB_GAP_EVENT;
	}
	c->attention = false;
	return PB_GAP_GO_ON;
}

/* True if the call of this ENTRY is on the stack already, because the chunk's list of open calls
 * names it. This happens if a signal handler interrupts a call before its ENTRY is written, and the
 * handler's records are the first in the chunk. The ENTRY then comes after the handler's records,
 * although its time is earlier than the times of these records. */
bool pb_gap_opened(struct pb_cursor *c, uint32_t site, uint64_t time)
{
	struct pb_call_stack *s = c->stack;

	if (s != c->opened_on || !s->depth || s->depth > c->opened || time >= c->latest ||
	    s->calls[s->depth - 1].site != site || s->calls[s->depth - 1].start != time)
		return false;
	c->opened = s->depth - 1;
	if (pb_cursor_inherits(c, time))
		c->inherited++;
	else
		c->entered++;
	s->calls[s->depth - 1].elsewhere = false;
	return true;
}
