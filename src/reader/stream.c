/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Merges the threads' cursors by time, with a heap. */
#include "reader/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define WINDOWS_TOTAL	(64u << 20)	/* limit of all cursors' read windows together, in bytes */
#define WINDOW_MIN	512		/* smallest read window in bytes, whatever the limit */

static bool wanted(const struct pb_thread *t, const uint32_t *tids, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (tids[i] == t->tid || tids[i] == t->pid)
			return true;
	return !nr;
}

static uint32_t window_size(size_t nr)
{
	uint64_t size = nr ? WINDOWS_TOTAL / nr : PB_CHUNK_SIZE;

	if (size > PB_CHUNK_SIZE)
		size = PB_CHUNK_SIZE;
	return size < WINDOW_MIN ? WINDOW_MIN : (uint32_t)size & ~7u;
}

static bool before(const struct pb_stream_key *a, const struct pb_stream_key *b)
{
	return a->time < b->time || (a->time == b->time && a->cursor < b->cursor);
}

static void sift_down(struct pb_stream *s, size_t i)
{
	struct pb_stream_key key = s->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= s->nr_heap)
			break;
		if (child + 1 < s->nr_heap && before(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!before(&s->heap[child], &key))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = key;
}

int pb_stream_open(struct pb_stream *s, struct pb_data *d, bool by_time, const uint32_t *tids,
		   size_t nr_tids)
{
	uint32_t window = by_time ? window_size(d->nr_threads) : PB_CHUNK_SIZE;

	memset(s, 0, sizeof(*s));
	s->data = d;
	s->by_time = by_time && !d->clock.none;
	s->fresh = true;
	s->room = d->nr_threads + 1;
	s->stacks = pb_stacks_new();
	s->cursors = calloc(s->room, sizeof(*s->cursors));
	s->heap = s->heap_start = calloc(s->room, sizeof(*s->heap));
	if (!s->stacks || !s->cursors || !s->heap)
		goto nomem;
	for (size_t i = 0; i < d->nr_threads; i++) {
		struct pb_cursor *c = &s->cursors[s->nr];
		struct pb_thread *t = &d->threads[i];

		if (!wanted(t, tids, nr_tids))
			continue;
		if (pb_cursor_init(c, d, s->stacks, t, window))
			goto nomem;
		s->nr++;
		s->heap[s->nr_heap++] = (struct pb_stream_key){
			t->nr ? d->chunks[t->first].start : t->start, c };
		for (size_t n = 0; n < t->nr; n++)
			s->totals.bytes += sizeof(struct pb_chunk) + d->chunks[t->first + n].used;
	}
	if (s->by_time)
		for (size_t i = s->nr_heap / 2; i--;)
			sift_down(s, i);
	d->bytes_read = 0;
	d->bytes_to_read = s->totals.bytes;
	posix_fadvise(d->chunks_fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return 0;
nomem:
	pb_stream_close(s);
	return -ENOMEM;
}

int pb_stream_add(struct pb_stream *s, struct pb_thread *t)
{
	if (s->nr == s->room) {
		size_t room = s->room ? 2 * s->room : 16;
		struct pb_cursor *cursors = realloc(s->cursors, room * sizeof(*cursors));

		if (cursors)
			s->cursors = cursors;
		struct pb_stream_key *heap = realloc(s->heap_start, room * sizeof(*heap));

		if (heap)
			s->heap = s->heap_start = heap;
		if (!cursors || !heap)
			return -ENOMEM;
		s->room = room;
	}
	s->nr_heap = 0;
	if (pb_cursor_init(&s->cursors[s->nr], s->data, s->stacks, t, PB_CHUNK_SIZE))
		return -ENOMEM;
	s->cursors[s->nr++].more = true;
	return 0;
}

void pb_stream_restart(struct pb_stream *s, bool by_time, uint64_t limit)
{
	s->heap = s->heap_start;
	s->nr_heap = 0;
	s->by_time = s->limited = by_time && !s->data->clock.none;
	s->limit = limit;
	s->fresh = true;
	for (size_t i = 0; i < s->nr; i++) {
		uint64_t time;

		if (pb_cursor_peek(&s->cursors[i], &time))
			s->heap[s->nr_heap++] = (struct pb_stream_key){ time, &s->cursors[i] };
	}
	if (s->by_time)
		for (size_t i = s->nr_heap / 2; i--;)
			sift_down(s, i);
}

void pb_stream_only(struct pb_stream *s, struct pb_cursor *c)
{
	s->heap = s->heap_start;
	s->by_time = s->limited = false;
	s->fresh = true;
	s->nr_heap = pb_cursor_peek(c, &s->heap[0].time);
	s->heap[0].cursor = c;
}

static void drop_first(struct pb_stream *s)
{
	s->shared |= s->heap[0].cursor->shared;
	s->nr_heap--;
	if (s->by_time) {
		s->heap[0] = s->heap[s->nr_heap];
		if (s->nr_heap)
			sift_down(s, 0);
	} else {
		s->heap++;
	}
	s->fresh = true;
}

/* If the first cursor's next event is no longer the earliest event, puts another cursor first. */
static void reorder(struct pb_stream *s)
{
	uint64_t limit = s->nr_heap > 1 ? s->heap[1].time : UINT64_MAX;

	if (s->nr_heap > 2 && s->heap[2].time < limit)
		limit = s->heap[2].time;
	if (!pb_cursor_peek(s->heap[0].cursor, &s->heap[0].time)) {
		drop_first(s);
	} else if (s->heap[0].time >= limit) {
		sift_down(s, 0);
	}
	s->fresh = true;
}

bool pb_stream_next(struct pb_stream *s, struct pb_event *ev)
{
	while (s->nr_heap) {
		bool merges = s->by_time && (s->nr_heap > 1 || s->limited);

		if (merges && !s->fresh)
			reorder(s);
		if (pb_unlikely(s->limited) && (!s->nr_heap || s->heap[0].time > s->limit))
			break;
		/* Open the chunk before its first event is returned. That event may come long after
		 * the chunk's start, and then another cursor's event may come first. */
		if (merges && pb_unlikely(!s->heap[0].cursor->in_chunk) &&
		    pb_cursor_open(s->heap[0].cursor)) {
			s->fresh = false;
			continue;
		}
		if (pb_likely(pb_cursor_next(s->heap[0].cursor, ev))) {
			s->fresh = false;
			return true;
		}
		drop_first(s);
	}
	ev->kind = PB_EV_NONE;
	return false;
}

const struct pb_stream_totals *pb_stream_totals(struct pb_stream *s)
{
	struct pb_stream_totals *t = &s->totals;

	t->records = t->lost = t->discarded = t->no_return = t->missed = t->unwritten =
		t->chunks_missing = t->read_errors = 0;
	for (size_t i = 0; i < s->nr; i++) {
		const struct pb_cursor *c = &s->cursors[i];

		t->records += c->records;
		t->lost += c->lost_seen > c->thread->lost ? c->lost_seen : c->thread->lost;
		t->discarded += c->thread->discarded;
		t->no_return += c->thread->no_return;
		t->missed += c->thread->missed;
		t->unwritten += c->unwritten;
		t->chunks_missing += c->chunks_missing;
		t->read_errors += c->read_errors;
	}
	/* meta also counts what threads lost that have no events and no THREAD record */
	if (s->nr == s->data->nr_threads && s->data->ended && !s->data->buffer) {
		const struct pb_meta_end *end = &s->data->end;

		if (end->lost > t->lost)
			t->lost = end->lost;
		if (end->no_return > t->no_return)
			t->no_return = end->no_return;
		if (end->chunks_overwritten > t->chunks_missing)
			t->chunks_missing = end->chunks_overwritten;
	}
	return t;
}

void pb_stream_close(struct pb_stream *s)
{
	for (size_t i = 0; i < s->nr; i++)
		pb_cursor_free(&s->cursors[i]);
	free(s->cursors);
	free(s->heap_start);
	pb_stacks_free(s->stacks);
	s->cursors = NULL;
	s->heap = s->heap_start = NULL;
	s->stacks = NULL;
	s->nr = s->nr_heap = 0;
}
