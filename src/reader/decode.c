/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Turns the words of records into events. */
#include "reader/decode_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/record.h"
#include "base/base.h"
#include "reader/record_table.h"

#define RECORD_WORDS 3		/* the decoder reads at most this many words of one record */

int pb_cursor_init(struct pb_cursor *c, struct pb_data *d, struct pb_stacks *stacks,
		   struct pb_thread *thread, uint32_t window_bytes)
{
	memset(c, 0, sizeof(*c));
	c->data = d;
	c->stacks = stacks;
	c->thread = thread;
	c->refs = d->chunks ? d->chunks + thread->first : NULL;
	c->nr_refs = thread->nr;
	c->window_words = window_bytes / 8;
	c->chunk.pid = thread->pid;
	c->chunk.tid = thread->tid;
	c->last = thread->start;
	c->stack = pb_stacks_get(stacks, thread->pid, thread->serial, 0, 0);
	c->shown = c->stack;
	return c->stack ? 0 : -ENOMEM;
}

void pb_cursor_free(struct pb_cursor *c)
{
	free(c->window);
	c->window = NULL;
	c->pos = c->end = 0;
	c->done = true;
}

/* Called if the records of a chunk, or the rest of them, can't be read. The files of a recording
 * that has ended don't change, so they are damaged. */
static void unreadable(struct pb_cursor *c, const char *why)
{
	struct pb_data *d = c->data;

	c->read_errors++;
	if (d->followed || d->unnoted)
		return;
	d->damaged |= d->ended;
	pb_data_note(d, "records can't be read (%s): their calls are missing", why);
}

/* Moves the unread words to the window's start, and reads more words from the file. False: the
 * window has no unread word, and the file has no more words. */
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
		n = pread(c->fd, c->window + left, want, (off_t)c->file_at);
		if (n < 8) {
			c->file_left = 0;
			unreadable(c, n < 0 ? strerror(errno) : "the file is cut off");
		} else {
			n &= ~7;
			c->end += (uint32_t)n / 8;
			c->file_at += (uint64_t)n;
			c->file_left -= (uint64_t)n;
		}
	}
	return c->pos < c->end;
}

/* Notes that the next records belong to the stack with this id. pb_cursor_peek() may call this
 * function long before the next event is returned, and events of other threads may come first. So
 * this function doesn't change the links between stacks (`from`). pb_event_set() changes them when
 * an event is returned. If a thread switches to a stack and back without an event there, no link
 * changes. */
static void use_stack(struct pb_cursor *c, uint64_t id)
{
	struct pb_call_stack *s = pb_stacks_get(c->stacks, c->chunk.pid, c->thread->serial,
						c->chunk.image, id);

	if (!s)
		return;		/* without memory, the calls go to the current stack */
	if (s->serial != c->thread->serial) {
		c->shared = true;
		s->serial = c->thread->serial;
	}
	c->switches |= !pb_stack_is_own(s);
	s->tid = c->chunk.tid;
	s->image = c->image;
	/* a thread that comes to a stack may begin a chunk there: then the list of open calls comes
	 * before the STACK record */
	if (c->stack != s)
		c->open_seen = 0;
	c->stack = s;
	c->searched = false;
}

static const struct pb_chunk_ref *next_ref(const struct pb_cursor *c)
{
	return c->next_chunk < c->nr_refs ? &c->refs[c->next_chunk] : NULL;
}

/* Makes the next chunk the current chunk. Notes whether records are missing before it, and how many
 * calls were lost. */
static void chunk_begin(struct pb_cursor *c, const struct pb_chunk *h, bool first)
{
	const struct pb_chunk *old = &c->chunk;
	uint64_t absent = first ? h->seq : h->seq - old->seq - 1;
	uint64_t missing = absent > c->skipped ? absent - c->skipped : 0;
	bool lost = h->lost > (first ? 0 : old->lost) || h->missed != (first ? 0 : old->missed);

	c->skipped = 0;
	c->chunks_missing += missing;
	if (first || absent || lost || h->image != old->image || h->pid != old->pid)
		c->gap = true;
	if (missing && !first)
		c->gap_due = true;
	if (h->lost > c->lost_seen)
		c->lost_due = h->lost - c->lost_seen;
	c->attention = c->gap || c->gap_due || c->lost_due;
	c->chunk = *h;
	if (first && h->pid == h->tid)
		c->born = c->thread->born ? c->thread->born : h->seq ? 0 : h->start;
	if (first || c->gap || !c->image)
		c->image = pb_data_image(c->data, h->image);
	c->last = c->latest = h->start;
	c->open_seen = 0;
	use_stack(c, h->stack);
}

static void report_progress(struct pb_data *d, const struct pb_chunk_ref *ref)
{
	d->bytes_read += sizeof(struct pb_chunk) + ref->used;
	if (d->progress && d->reads++ % 64 == 0)
		d->progress(d->progress_arg, d->bytes_read, d->bytes_to_read);
}

/* Returns NULL, or what is wrong. */
static const char *read_header(int fd, uint64_t offset, const struct pb_chunk_ref *ref,
			       struct pb_chunk *h)
{
	ssize_t n = pread(fd, h, sizeof(*h), (off_t)offset);

	if (n != sizeof(*h))
		return n < 0 ? strerror(errno) : "the file is cut off";
	return h->serial == ref->serial && h->seq == ref->seq ? NULL : "the file has changed";
}

/* Opens the next chunk that can be read. False if there is none. */
static bool next_chunk(struct pb_cursor *c)
{
	const struct pb_chunk_ref *ref;

	c->in_chunk = false;
	while ((ref = next_ref(c))) {
		bool first = !c->next_chunk++;
		struct pb_chunk h;
		uint64_t offset;
		int fd = pb_data_chunk_file(c->data, ref, &offset);
		const char *error;

		report_progress(c->data, ref);
		if (!c->window)
			c->window = malloc((size_t)c->window_words * 8);
		error = c->window ? read_header(fd, offset, ref, &h) : strerror(ENOMEM);
		if (error) {
			unreadable(c, error);
			continue;
		}
		h.used = ref->used;
		chunk_begin(c, &h, first || !c->chunk.serial);
		if (c->gap)
			pb_gap_begin(c, ref);
		c->fd = fd;
		c->growing = c->more && ref->offset & PB_CHUNK_REF_OPEN &&
			     !(ref->offset & PB_CHUNK_REF_LEFT);
		c->file_at = offset + sizeof(h);
		c->file_left = ref->used;
		c->pos = c->end = 0;
		c->in_chunk = true;
		return true;
	}
	return false;
}

static bool ext_is_event(const struct pb_cursor *c, unsigned type)
{
	unsigned event = pb_ext_infos[type].event;

	return event == PB_EXT_EVENT_EVENT || (event == PB_EXT_EVENT_AFTER_GAP && c->gap);
}

/* Skips a word of 0, which was reserved and never written. No record begins in the last
 * PB_CHUNK_DEAD_ZONE bytes of a chunk, so a word of 0 there isn't counted. Words of 0 are found
 * there if a writer has put a PAD into the chunk's very last word (mark_end() in ring/change.c). */
static void skip_hole(struct pb_cursor *c)
{
	uint64_t left = (c->end - c->pos) * 8ull + c->file_left;

	c->unwritten += sizeof(c->chunk) + c->chunk.used - left <
			PB_CHUNK_SIZE - PB_CHUNK_DEAD_ZONE;
	pb_cursor_consume(c, 1);
}

/* Handles the EXT record or the hole at pos. If the record is an event, returns true and doesn't
 * consume the record. */
static bool settle_ext(struct pb_cursor *c, uint64_t word)
{
	unsigned type = pb_ext_type_of(word);
	unsigned len = pb_ext_len_of(word);
	unsigned need = pb_ext_infos[type].words;

	if (!word) {
		skip_hole(c);
		return false;
	}
	if (!len) {
		pb_cursor_consume(c, 1);
		return false;
	}
	if (need > c->end - c->pos) {		/* the record is cut off at the chunk's end */
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
		c->unwritten += type == PB_EXT_UNDONE;
	}
	pb_cursor_consume(c, len);
	return false;
}

/* Advances to the next word that is an event. False at the chunk's end. */
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

/* Changes an event of an inherited call. If a call began before the first thread of its process,
 * the process inherited the call by fork. If the call had no record at the time of the fork, both
 * the parent and the child write a record of the call. But the call counts only in the parent. So
 * in the child, an ENTRY becomes an OPEN, and a LEAF becomes an EXIT. */
static void inherit(struct pb_cursor *c, struct pb_event *ev)
{
	c->inherited++;
	ev->flags |= PB_EV_INHERITED;
	if (ev->kind == PB_EV_ENTRY) {
		ev->kind = PB_EV_OPEN;
		ev->time = c->born;
	} else if (ev->kind == PB_EV_LEAF) {
		ev->kind = PB_EV_EXIT;
		ev->start = 0;
	}
}

static inline void advance(struct pb_cursor *c, uint32_t words, uint64_t time)
{
	c->last = time;
	if (time > c->latest)
		c->latest = time;
	c->records++;
	c->pos += words;
}

/* Handles EXIT, TAIL, and END of a call with an ENTRY. Calls that are open inside this call are
 * skipped. Each skipped call gives an END event, and each call of this function returns only one
 * event. So the record is consumed after the last skipped call. */
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
		pb_event_pop(c, ev, time, PB_EV_SKIPPED);
		return;
	}
	c->searched = false;
	if (pb_unlikely(c->skip_to < 0 || !s->depth)) {
		pb_event_set(c, ev, kind, site, 0, time);
		ev->flags = c->data->whole ? PB_EV_ELSEWHERE : 0;
		if (s->base) {
			s->base--;
			ev->depth = s->base;
			ev->flags |= s->base_inherited ? PB_EV_INHERITED : 0;
		}
	} else {
		struct pb_open_call *call = &s->calls[--s->depth];

		pb_event_set(c, ev, kind, site, call->start, time);
		ev->call = call;
	}
	advance(c, words, time);
}

/* Does what close_call() does, but for an EXT record of `len` words. */
static void close_ext(struct pb_cursor *c, struct pb_event *ev, enum pb_event_kind kind,
		      uint32_t site, uint64_t time, uint32_t len)
{
	close_call(c, ev, kind, site, time, 1);
	if (ev->kind == PB_EV_EXIT)
		ev->flags |= PB_EV_TAIL;
	if (!c->searched)
		pb_cursor_consume(c, len - 1);
}

static uint64_t before(uint64_t time, uint64_t duration)
{
	return time > duration ? time - duration : 0;
}

static void decode_ext(struct pb_cursor *c, struct pb_event *ev, uint64_t word)
{
	unsigned type = pb_ext_type_of(word);
	unsigned len = pb_ext_len_of(word);
	uint32_t site = word >> PB_EXT_SITE_SHIFT & PB_SITE_MASK;
	uint64_t time = pb_time_near(c->last, word >> PB_EXT_TIME_SHIFT, PB_EXT_TIME_BITS);
	uint64_t payload = len > 1 ? c->window[c->pos + 1] : 0;

	switch (type) {
	case PB_EXT_CALL:
		pb_event_set(c, ev, PB_EV_CALL, site, time, time);
		break;
	case PB_EXT_FUNC:
		pb_event_set(c, ev, PB_EV_FUNC, site, time, time);
		ev->value = payload >> PB_EXT_ADDRESS_SHIFT;
		break;
	case PB_EXT_END:
		if (payload == PB_END_ENTRY) {
			close_ext(c, ev, PB_EV_END, site, time, len);
			return;
		}
		pb_event_set(c, ev, PB_EV_END, site, payload, time);
		break;
	case PB_EXT_TAIL:
		close_ext(c, ev, PB_EV_EXIT, site, time, len);
		return;
	case PB_EXT_TAIL_LEAF:
		pb_event_set(c, ev, PB_EV_LEAF, site, before(time, payload >> PB_EXT_ADDRESS_SHIFT),
			     time);
		ev->flags = PB_EV_TAIL;
		break;
	case PB_EXT_LONG:
		time = c->window[c->pos + 2];
		pb_event_set(c, ev, PB_EV_LEAF, site, payload < time ? payload : time, time);
		break;
	case PB_EXT_LOST:
		pb_event_lost(c, ev, payload);
		pb_cursor_consume(c, len);
		return;
	}
	if (pb_unlikely(ev->start < c->born) && type != PB_EXT_CALL && type != PB_EXT_FUNC)
		inherit(c, ev);
	advance(c, 0, time);
	pb_cursor_consume(c, len);
}

/* Called after a thread's last record. If a leaf still runs, returns an event for the leaf. After
 * that, returns an event for losses that no record reported. False: there are no more events, and
 * the cursor is freed. */
static bool finish(struct pb_cursor *c, struct pb_event *ev)
{
	const struct pb_chunk *h = &c->chunk;

	switch (c->finish++) {
	case 0:
		if (h->leaf_start > c->latest && (h->leaf_site & ~PB_SITE_MASK) == 0 &&
		    h->leaf_site) {
			c->stack->leaf_site = h->leaf_site;
			c->stack->leaf_start = h->leaf_start;
			c->stack->leaf_inherited = h->leaf_start < c->born;
			pb_event_set(c, ev, PB_EV_LEAF_OPEN, h->leaf_site, h->leaf_start,
				     h->leaf_start);
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
			pb_event_lost(c, ev, 0);
			return true;
		}
	}
	pb_cursor_free(c);
	return false;
}

bool pb_cursor_next(struct pb_cursor *c, struct pb_event *ev)
{
	enum pb_gap a;
	uint64_t word, time, duration;

again:
	for (;;) {
		if (pb_unlikely(!c->in_chunk || !settle(c))) {
			if (c->done || (c->in_chunk && c->growing))
				return false;
			if (!next_chunk(c))
				return !c->more && finish(c, ev);
			continue;
		}
		if (pb_likely(!c->attention))
			break;
		a = pb_gap_attend(c, ev);
		if (a == PB_GAP_EVENT)
			return true;
		if (a == PB_GAP_GO_ON)
			break;
	}
	word = c->window[c->pos];
	switch (word & PB_TAG_MASK) {
	case PB_TAG_LEAF:
		time = pb_time_near(c->last, word >> PB_LEAF_SHIFT, PB_LEAF_BITS);
		duration = word >> PB_DUR_SHIFT & ((1 << PB_DUR_BITS) - 1);
		pb_event_set(c, ev, PB_EV_LEAF, word >> PB_SITE_SHIFT & PB_SITE_MASK,
			     before(time, duration), time);
		if (pb_unlikely(ev->start < c->born))
			inherit(c, ev);
		advance(c, 1, time);
		break;
	case PB_TAG_ENTRY:
		time = pb_time_near(c->last, word >> PB_TIME_SHIFT, PB_TIME_BITS);
		if (pb_unlikely(c->opened) &&
		    pb_gap_opened(c, word >> PB_SITE_SHIFT & PB_SITE_MASK, time)) {
			advance(c, 1, time);
			goto again;
		}
		pb_event_set(c, ev, PB_EV_ENTRY, word >> PB_SITE_SHIFT & PB_SITE_MASK, time, time);
		ev->call = pb_stack_push(c->stack, ev->site, time);
		if (pb_unlikely(time < c->born))
			inherit(c, ev);
		advance(c, 1, time);
		break;
	case PB_TAG_EXIT:
		time = pb_time_near(c->last, word >> PB_TIME_SHIFT, PB_TIME_BITS);
		close_call(c, ev, PB_EV_EXIT, word >> PB_SITE_SHIFT & PB_SITE_MASK, time, 1);
		break;
	default:
		decode_ext(c, ev, word);
	}
	return true;
}

bool pb_cursor_open(struct pb_cursor *c)
{
	return !c->done && !c->in_chunk && next_chunk(c);
}

void pb_cursor_extend(struct pb_cursor *c, const struct pb_chunk_ref *ref, bool growing)
{
	uint64_t read = c->chunk.used - c->file_left, offset;
	struct pb_chunk h;

	c->fd = pb_data_chunk_file(c->data, ref, &offset);
	if (pread(c->fd, &h, sizeof(h), (off_t)offset) == sizeof(h) && h.serial == ref->serial &&
	    h.seq == ref->seq && ref->used >= read) {
		h.used = ref->used;
		c->chunk = h;
		c->file_at = offset + sizeof(h) + read;
		c->file_left = ref->used - read;
	} else {
		c->file_left = 0;
		c->read_errors++;
	}
	c->growing = growing;
}

bool pb_cursor_peek(struct pb_cursor *c, uint64_t *time)
{
	const struct pb_chunk_ref *ref;
	uint64_t word;
	unsigned type;

	if (c->done)
		return false;
	*time = c->last;
	if (!c->in_chunk || !settle(c)) {
		if (c->in_chunk && c->growing)
			return false;
		c->in_chunk = false;
		ref = next_ref(c);
		if (ref)
			*time = ref->start;
		return ref || !c->more;
	}
	word = c->window[c->pos];
	type = pb_ext_type_of(word);
	if (c->attention && !pb_gap_settled(c))
		return true;
	if ((word & PB_TAG_MASK) == PB_TAG_LEAF)
		*time = before(pb_time_near(c->last, word >> PB_LEAF_SHIFT, PB_LEAF_BITS),
			       word >> PB_DUR_SHIFT & ((1 << PB_DUR_BITS) - 1));
	else if (word & PB_TAG_MASK)
		*time = pb_time_near(c->last, word >> PB_TIME_SHIFT, PB_TIME_BITS);
	else if (type == PB_EXT_LONG)
		*time = c->window[c->pos + 1];
	else if (pb_ext_infos[type].has_time)
		*time = pb_time_near(c->last, word >> PB_EXT_TIME_SHIFT, PB_EXT_TIME_BITS);
	if (!(word & PB_TAG_MASK) && type == PB_EXT_TAIL_LEAF)
		*time = before(*time, c->window[c->pos + 1] >> PB_EXT_ADDRESS_SHIFT);
	return true;
}
