/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reader/decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/record.h"
#include "base/base.h"

#define RECORD_WORDS 3		/* the most of a record that is looked at */

int pb_cursor_init(struct pb_cursor *c, struct pb_data *d, struct pb_stacks *stacks,
		   struct pb_thread *thread, uint32_t window_bytes)
{
	memset(c, 0, sizeof(*c));
	c->data = d;
	c->stacks = stacks;
	c->thread = thread;
	c->window_words = window_bytes / 8;
	c->chunk.pid = thread->pid;
	c->chunk.tid = thread->tid;
	c->stack = pb_stacks_get(stacks, thread->pid, thread->serial, 0);
	return c->stack ? 0 : -ENOMEM;
}

void pb_cursor_free(struct pb_cursor *c)
{
	free(c->window);
	c->window = NULL;
	c->pos = c->end = 0;
	c->done = true;
}

/* Moves what is left to the window's front and reads on. False: no word left. */
static bool refill(struct pb_cursor *c)
{
	uint32_t left = c->end - c->pos;
	uint64_t want = (uint64_t)(c->window_words - left) * 8;
	ssize_t n;

	if (c->file_left) {
		memmove(c->window, c->window + c->pos, left * 8);
		c->pos = 0;
		c->end = left;
		if (want > c->file_left)
			want = c->file_left;
		n = pread(c->data->chunks_fd, c->window + left, want, (off_t)c->file_at);
		if (n < 8) {
			c->file_left = 0;
			c->read_errors++;
		} else {
			n &= ~7;
			c->end += (uint32_t)n / 8;
			c->file_at += (uint64_t)n;
			c->file_left -= (uint64_t)n;
		}
	}
	return c->pos < c->end;
}

static void consume(struct pb_cursor *c, uint32_t words)
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

static void use_stack(struct pb_cursor *c, uint64_t id)
{
	struct pb_call_stack *s = pb_stacks_get(c->stacks, c->chunk.pid, c->thread->serial, id);

	if (!s)
		return;		/* no memory: its calls are taken for the present stack's */
	if (s->serial != c->thread->serial) {
		c->shared = true;
		s->serial = c->thread->serial;
	}
	s->tid = c->chunk.tid;
	s->image = c->image;
	if (s != c->stack)
		pb_stack_switch(c->stack, s);
	c->stack = s;
	c->open_seen = 0;
	c->searched = false;
}

static const struct pb_chunk_ref *next_ref(const struct pb_cursor *c)
{
	if (c->next_chunk >= c->thread->nr)
		return NULL;
	return &c->data->chunks[c->thread->first + c->next_chunk];
}

/* OPEN records at a chunk's start. A call for whose ENTRY the chunk was opened
 * may stand last among them: it isn't open yet. *listed is with it. */
static uint32_t count_open(struct pb_cursor *c, const struct pb_chunk_ref *ref, uint32_t *listed)
{
	/* all that may stand there, and the ENTRY */
	uint64_t words[PB_CHUNK_OPEN_MAX * PB_EXT_OPEN_WORDS + PB_EXT_LOST_WORDS +
		       PB_EXT_TIME_WORDS + 1], start = 0;
	size_t bytes = ref->used < sizeof(words) ? ref->used : sizeof(words);
	ssize_t n = pread(c->data->chunks_fd, words, bytes,
			  (off_t)(ref->offset + sizeof(struct pb_chunk)));
	uint32_t nr = 0, site = 0;
	ssize_t i;

	for (i = 0; i + 1 < n / 8; i += 2) {
		unsigned head = words[i] & 0xffff;

		if (head == pb_ext_word(PB_EXT_OPEN, PB_EXT_OPEN_WORDS, 0, 0)) {
			site = words[i] >> PB_EXT_SITE_SHIFT & PB_SITE_MASK;
			start = words[i + 1];
			nr++;
		} else if (head != pb_ext_word(PB_EXT_LOST, PB_EXT_LOST_WORDS, 0, 0) &&
			   head != pb_ext_word(PB_EXT_TIME, PB_EXT_TIME_WORDS, 0, 0)) {
			break;
		}
	}
	*listed = nr;
	if (nr && i < n / 8 && words[i] == (start << PB_TIME_SHIFT | (uint64_t)site << PB_SITE_SHIFT |
					    PB_TAG_ENTRY))
		nr--;
	return nr;
}

/* After a gap: which of the open calls that are known the list begins with. A
 * list that isn't full has all whose ENTRY was written, though more may be
 * open; a full one has the innermost of `depth` calls. */
static void gap_begin(struct pb_cursor *c, const struct pb_chunk_ref *ref)
{
	struct pb_call_stack *s = c->stack;
	uint32_t listed, nr = count_open(c, ref, &listed), depth = c->chunk.depth;
	uint32_t outer = listed >= PB_CHUNK_OPEN_MAX && depth > listed ? depth - listed : 0;

	c->open_left = nr;
	if (outer > PB_MAX_SITES)
		outer = 0;
	if (s->base <= outer && outer - s->base <= s->depth) {
		c->open_seen = outer - s->base;
	} else {
		c->open_seen = 0;
		c->base_due = outer;
	}
}

static void chunk_begin(struct pb_cursor *c, const struct pb_chunk *h, bool first)
{
	const struct pb_chunk *old = &c->chunk;
	uint64_t missing = first ? h->seq : h->seq - old->seq - 1;
	bool lost = h->lost > (first ? 0 : old->lost);

	c->chunks_missing += missing;
	if (first || missing || lost || h->image != old->image || h->pid != old->pid)
		c->gap = true;
	if (missing && !first)
		c->gap_due = true;
	if (h->lost > c->lost_seen)
		c->lost_due = h->lost - c->lost_seen;
	c->attention = c->gap || c->gap_due || c->lost_due;
	c->chunk = *h;
	if (first && !h->seq && h->pid == h->tid)
		c->born = h->start;
	if (first || c->gap || !c->image)
		c->image = pb_data_image(c->data, h->image);
	c->last = c->latest = h->start;
	use_stack(c, h->stack);
}

static void tell_progress(struct pb_data *d, const struct pb_chunk_ref *ref)
{
	d->bytes_read += sizeof(struct pb_chunk) + ref->used;
	if (d->progress && d->reads++ % 64 == 0)
		d->progress(d->progress_arg, d->bytes_read, d->bytes_to_read);
}

/* Opens the next chunk that can be read; false if there is none. */
static bool next_chunk(struct pb_cursor *c)
{
	const struct pb_chunk_ref *ref;

	c->in_chunk = false;
	while ((ref = next_ref(c))) {
		bool first = !c->next_chunk++;
		struct pb_chunk h;

		tell_progress(c->data, ref);
		if (!c->window)
			c->window = malloc((size_t)c->window_words * 8);
		if (!c->window ||
		    pread(c->data->chunks_fd, &h, sizeof(h), (off_t)ref->offset) != sizeof(h) ||
		    h.serial != ref->serial || h.seq != ref->seq) {
			c->read_errors++;
			continue;
		}
		chunk_begin(c, &h, first || !c->chunk.serial);
		if (c->gap)
			gap_begin(c, ref);
		c->file_at = ref->offset + sizeof(h);
		c->file_left = ref->used;
		c->pos = c->end = 0;
		c->in_chunk = true;
		return true;
	}
	return false;
}

static uint64_t near(uint64_t last, uint64_t low, unsigned bits)
{
	return last + (uint64_t)((int64_t)((low - last) << (64 - bits)) >> (64 - bits));
}

static bool ext_is_event(const struct pb_cursor *c, unsigned type)
{
	switch (type) {
	case PB_EXT_CALL: case PB_EXT_FUNC: case PB_EXT_END: case PB_EXT_LONG: case PB_EXT_LOST:
		return true;
	case PB_EXT_OPEN:
		return c->gap;
	default:
		return false;
	}
}

static const uint8_t ext_words[] = {
	[PB_EXT_TIME] = PB_EXT_TIME_WORDS, [PB_EXT_CALL] = PB_EXT_CALL_WORDS,
	[PB_EXT_FUNC] = PB_EXT_FUNC_WORDS, [PB_EXT_END] = PB_EXT_END_WORDS,
	[PB_EXT_LONG] = PB_EXT_LONG_WORDS, [PB_EXT_OPEN] = PB_EXT_OPEN_WORDS,
	[PB_EXT_STACK] = PB_EXT_STACK_WORDS, [PB_EXT_LOST] = PB_EXT_LOST_WORDS,
	[PB_EXT_PAD] = PB_EXT_PAD_WORDS,
};

/* One EXT record or hole at pos. True if it stands for an event, and stays. */
static bool settle_ext(struct pb_cursor *c, uint64_t word)
{
	unsigned type = word >> PB_EXT_TYPE_SHIFT & ((1 << PB_EXT_TYPE_BITS) - 1);
	unsigned len = word >> PB_EXT_LEN_SHIFT & ((1 << PB_EXT_LEN_BITS) - 1);
	unsigned need = type < pb_array_size(ext_words) ? ext_words[type] : 1;

	if (!word || !len) {
		consume(c, 1);
		return false;
	}
	if (need > c->end - c->pos) {		/* cut off at the chunk's end */
		c->pos = c->end;
		return false;
	}
	if (len >= need) {
		if (ext_is_event(c, type))
			return true;
		if (type == PB_EXT_TIME)
			c->last = c->window[c->pos + 1];
		if (type == PB_EXT_STACK)
			use_stack(c, c->window[c->pos + 1]);
	}
	consume(c, len);
	return false;
}

/* Goes to the next word that stands for an event; false at the chunk's end. */
static inline bool settle(struct pb_cursor *c)
{
	for (;;) {
		if (pb_unlikely(c->end - c->pos < RECORD_WORDS) && !refill(c))
			return false;
		uint64_t word = c->window[c->pos];

		if (pb_likely(word & PB_TAG_MASK) || settle_ext(c, word))
			return true;
	}
}

static inline void event_set(struct pb_cursor *c, struct pb_event *ev, enum pb_event_kind kind,
			     uint32_t site, uint64_t start, uint64_t time)
{
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

/* What began before its process' first thread did was taken along by a fork,
 * and is counted in the parent. A call that had no record yet when that
 * happened gets one in both processes. */
static void inherit(struct pb_cursor *c, struct pb_event *ev)
{
	c->inherited++;
	ev->flags = PB_EV_INHERITED;
	if (ev->kind == PB_EV_ENTRY) {
		ev->kind = PB_EV_OPEN;
		ev->time = c->born;
	} else if (ev->kind == PB_EV_LEAF) {
		ev->kind = PB_EV_EXIT;
		ev->start = 0;
	}
}

/* The innermost open call ends without its own record. */
static void event_pop(struct pb_cursor *c, struct pb_event *ev, uint64_t time, uint32_t flags)
{
	struct pb_open_call *call = &c->stack->calls[--c->stack->depth];

	event_set(c, ev, PB_EV_END, call->site, call->start, time);
	ev->call = call;
	ev->flags = flags;
}

static void event_lost(struct pb_cursor *c, struct pb_event *ev, uint64_t count)
{
	if (count < c->lost_due)
		count = c->lost_due;
	event_set(c, ev, PB_EV_LOST, 0, 0, c->last);
	ev->value = count;
	if (c->gap_due)
		ev->flags = PB_EV_GAP;
	c->lost_seen += count;
	c->lost_due = 0;
	c->gap_due = false;
}

enum attend { GO_ON, AGAIN, EVENT };

static enum attend attend_open(struct pb_cursor *c, struct pb_event *ev)
{
	struct pb_call_stack *s = c->stack;
	uint64_t word = c->window[c->pos], start = c->window[c->pos + 1];
	uint32_t site = word >> PB_EXT_SITE_SHIFT & PB_SITE_MASK;
	struct pb_open_call *call;

	if (!c->open_left) {
		consume(c, word >> PB_EXT_LEN_SHIFT & 0xff);
		return AGAIN;
	}
	if (c->open_seen < s->depth && s->calls[c->open_seen].site == site &&
	    s->calls[c->open_seen].start == start) {
		c->open_seen++;
		c->open_left--;
	} else if (c->open_seen < s->depth) {
		event_pop(c, ev, c->last, PB_EV_GAP);
		return EVENT;
	} else {
		if (c->base_due) {
			s->base = c->base_due;
			s->base_inherited = !c->chunk.seq;
			c->base_due = 0;
		}
		event_set(c, ev, PB_EV_OPEN, site, start, c->last);
		c->open_left--;
		call = ev->call = pb_stack_push(s, site, start);
		if (!c->chunk.seq)
			ev->flags = PB_EV_INHERITED;
		c->open_seen++;
		consume(c, word >> PB_EXT_LEN_SHIFT & 0xff);
		return call ? EVENT : AGAIN;
	}
	consume(c, word >> PB_EXT_LEN_SHIFT & 0xff);
	return AGAIN;
}

/* What has to be settled before a chunk's first record: which calls are still
 * open after a gap, and how much was lost. */
static enum attend attend(struct pb_cursor *c, struct pb_event *ev)
{
	struct pb_call_stack *s = c->stack;
	uint64_t word = c->window[c->pos];
	unsigned type = word & PB_TAG_MASK ? 0 : word >> PB_EXT_TYPE_SHIFT & 0x3f;

	if (c->gap && type == PB_EXT_OPEN)
		return attend_open(c, ev);
	if (c->gap) {
		if (s->depth > c->open_seen) {
			event_pop(c, ev, c->last, PB_EV_GAP);
			return EVENT;
		}
		c->gap = false;
	}
	if (type != PB_EXT_LOST && (c->lost_due || c->gap_due)) {
		event_lost(c, ev, 0);
		c->attention = false;
		return EVENT;
	}
	c->attention = false;
	return GO_ON;
}

static inline void advance(struct pb_cursor *c, uint32_t words, uint64_t time)
{
	c->last = time;
	if (time > c->latest)
		c->latest = time;
	c->records++;
	c->pos += words;
}

/* EXIT, and END of a call with an ENTRY. The record stays until all that it
 * skipped were told. */
static void close_call(struct pb_cursor *c, struct pb_event *ev, enum pb_event_kind kind,
		       uint32_t site, uint64_t time, uint32_t words)
{
	struct pb_call_stack *s = c->stack;

	if (!c->searched) {
		if (pb_likely(s->depth && s->calls[s->depth - 1].site == site))
			c->skip_to = s->depth - 1;
		else
			c->skip_to = pb_stack_find(s, site);
	}
	if (pb_unlikely(c->skip_to >= 0 && s->depth && c->skip_to < s->depth - 1)) {
		c->searched = true;
		event_pop(c, ev, time, PB_EV_SKIPPED);
		return;
	}
	c->searched = false;
	if (pb_unlikely(c->skip_to < 0 || !s->depth)) {
		event_set(c, ev, kind, site, 0, time);
		if (s->base) {
			s->base--;
			ev->depth = s->base;
			ev->flags = s->base_inherited ? PB_EV_INHERITED : 0;
		}
	} else {
		struct pb_open_call *call = &s->calls[--s->depth];

		event_set(c, ev, kind, site, call->start, time);
		ev->call = call;
	}
	advance(c, words, time);
}

static void decode_ext(struct pb_cursor *c, struct pb_event *ev, uint64_t word)
{
	unsigned type = word >> PB_EXT_TYPE_SHIFT & ((1 << PB_EXT_TYPE_BITS) - 1);
	unsigned len = word >> PB_EXT_LEN_SHIFT & ((1 << PB_EXT_LEN_BITS) - 1);
	uint32_t site = word >> PB_EXT_SITE_SHIFT & PB_SITE_MASK;
	uint64_t time = near(c->last, word >> PB_EXT_TIME_SHIFT, PB_EXT_TIME_BITS);
	uint64_t payload = len > 1 ? c->window[c->pos + 1] : 0;

	switch (type) {
	case PB_EXT_CALL:
		event_set(c, ev, PB_EV_CALL, site, time, time);
		break;
	case PB_EXT_FUNC:
		event_set(c, ev, PB_EV_FUNC, site, time, time);
		ev->value = payload;
		break;
	case PB_EXT_END:
		if (payload == PB_END_ENTRY) {
			uint32_t skip = len - PB_EXT_END_WORDS;

			close_call(c, ev, PB_EV_END, site, time, PB_EXT_END_WORDS);
			if (!c->searched)
				consume(c, skip);
			return;
		}
		event_set(c, ev, PB_EV_END, site, payload, time);
		break;
	case PB_EXT_LONG:
		time = c->window[c->pos + 2];
		event_set(c, ev, PB_EV_LEAF, site, payload < time ? payload : time, time);
		break;
	case PB_EXT_LOST:
		event_lost(c, ev, payload);
		consume(c, len);
		return;
	}
	if (pb_unlikely(ev->start < c->born) && type != PB_EXT_CALL && type != PB_EXT_FUNC)
		inherit(c, ev);
	advance(c, 0, time);
	consume(c, len);
}

static bool finish(struct pb_cursor *c, struct pb_event *ev)
{
	const struct pb_chunk *h = &c->chunk;

	switch (c->finish++) {
	case 0:
		if (h->leaf_start > c->latest && (h->leaf_site & ~PB_SITE_MASK) == 0 && h->leaf_site) {
			c->stack->leaf_site = h->leaf_site;
			c->stack->leaf_start = h->leaf_start;
			c->stack->leaf_inherited = h->leaf_start < c->born;
			event_set(c, ev, PB_EV_LEAF_OPEN, h->leaf_site, h->leaf_start, h->leaf_start);
			if (c->stack->leaf_inherited)
				ev->flags = PB_EV_INHERITED;
			return true;
		}
		c->finish++;
		/* fall through */
	case 1:
		if (c->thread->lost > c->lost_seen + c->lost_due)
			c->lost_due = c->thread->lost - c->lost_seen;
		if (c->lost_due || c->gap_due) {
			event_lost(c, ev, 0);
			return true;
		}
	}
	pb_cursor_free(c);
	return false;
}

bool pb_cursor_next(struct pb_cursor *c, struct pb_event *ev)
{
	enum attend a;
	uint64_t word, time, duration;

	for (;;) {
		if (pb_unlikely(!c->in_chunk || !settle(c))) {
			if (c->done)
				return false;
			if (!next_chunk(c))
				return finish(c, ev);
			continue;
		}
		if (pb_likely(!c->attention))
			break;
		a = attend(c, ev);
		if (a == EVENT)
			return true;
		if (a == GO_ON)
			break;
	}
	word = c->window[c->pos];
	switch (word & PB_TAG_MASK) {
	case PB_TAG_LEAF:
		time = near(c->last, word >> PB_LEAF_SHIFT, PB_LEAF_BITS);
		duration = word >> PB_DUR_SHIFT & ((1 << PB_DUR_BITS) - 1);
		event_set(c, ev, PB_EV_LEAF, word >> PB_SITE_SHIFT & PB_SITE_MASK,
			  time > duration ? time - duration : 0, time);
		if (pb_unlikely(ev->start < c->born))
			inherit(c, ev);
		advance(c, 1, time);
		break;
	case PB_TAG_ENTRY:
		time = near(c->last, word >> PB_TIME_SHIFT, PB_TIME_BITS);
		event_set(c, ev, PB_EV_ENTRY, word >> PB_SITE_SHIFT & PB_SITE_MASK, time, time);
		ev->call = pb_stack_push(c->stack, ev->site, time);
		if (pb_unlikely(time < c->born))
			inherit(c, ev);
		advance(c, 1, time);
		break;
	case PB_TAG_EXIT:
		time = near(c->last, word >> PB_TIME_SHIFT, PB_TIME_BITS);
		close_call(c, ev, PB_EV_EXIT, word >> PB_SITE_SHIFT & PB_SITE_MASK, time, 1);
		break;
	default:
		decode_ext(c, ev, word);
	}
	return true;
}

bool pb_cursor_peek(struct pb_cursor *c, uint64_t *time)
{
	const struct pb_chunk_ref *ref;
	uint64_t word;

	if (c->done)
		return false;
	*time = c->last;
	if (!c->in_chunk || !settle(c)) {
		ref = next_ref(c);
		if (ref)
			*time = ref->start;
		return true;
	}
	word = c->window[c->pos];
	if (c->attention)
		return true;
	if ((word & PB_TAG_MASK) == PB_TAG_LEAF)
		*time = near(c->last, word >> PB_LEAF_SHIFT, PB_LEAF_BITS) -
			(word >> PB_DUR_SHIFT & ((1 << PB_DUR_BITS) - 1));
	else if (word & PB_TAG_MASK)
		*time = near(c->last, word >> PB_TIME_SHIFT, PB_TIME_BITS);
	else if ((word >> PB_EXT_TYPE_SHIFT & 0x3f) == PB_EXT_LONG)
		*time = c->window[c->pos + 1];
	else if ((word >> PB_EXT_TYPE_SHIFT & 0x3f) != PB_EXT_LOST)
		*time = near(c->last, word >> PB_EXT_TIME_SHIFT, PB_EXT_TIME_BITS);
	return true;
}
