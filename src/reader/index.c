/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the chunks in one pass over their headers, and then orders them by thread. At the first
 * invalid header the pass ends, because nothing else marks the start of a chunk.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader/data.h"
#include "reader/open_chunks.h"

struct scan {
	struct pb_data *d;
	size_t room;
	struct pb_thread *seen;		/* an element for each run of adjacent chunks of one
					 * thread */
	size_t nr_seen, seen_room;
};

static int by_thread(const void *a, const void *b)
{
	const struct pb_chunk_ref *x = a, *y = b;

	if (x->serial != y->serial)
		return x->serial < y->serial ? -1 : 1;
	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	/* if the file has a chunk twice, the copy with more records comes first and is kept */
	return x->used > y->used ? -1 : x->used < y->used;
}

bool pb_chunk_header_ok(const struct pb_chunk *c)
{
	return c->serial && c->state <= PB_CHUNK_HELD && !(c->used % 8) &&
	       c->used <= PB_CHUNK_SIZE - PB_CHUNK_HEADER;
}

#define MAX_BUFFERS 64		/* at most this many buffers are counted */

static int count_buffer(struct pb_data *d, uint32_t id)
{
	struct pb_buffer *list;
	size_t i = 0;

	while (i < d->nr_buffers && d->buffers[i].id != id)
		i++;
	if (i == d->nr_buffers) {
		if (i == MAX_BUFFERS)
			return 0;
		list = realloc(d->buffers, (i + 1) * sizeof(*list));
		if (!list)
			return -ENOMEM;
		d->buffers = list;
		list[d->nr_buffers++] = (struct pb_buffer){ .id = id };
	}
	d->buffers[i].chunks++;
	return 0;
}

static int add_ref(struct scan *s, const struct pb_chunk *c, uint64_t offset, uint32_t used)
{
	struct pb_data *d = s->d;

	if (d->nr_chunks == s->room) {
		size_t room = s->room ? s->room * 2 : 256;
		struct pb_chunk_ref *refs = realloc(d->chunks, room * sizeof(*refs));

		if (!refs)
			return -ENOMEM;
		d->chunks = refs;
		s->room = room;
	}
	d->chunks[d->nr_chunks++] = (struct pb_chunk_ref){
		.offset = offset, .seq = c->seq, .start = c->start, .serial = c->serial,
		.used = used,
	};
	return 0;
}

/* Names a thread after its program. If the recorder was killed, the data has no names of
 * threads. */
void pb_thread_name_after(struct pb_thread *t, const struct pb_image *image)
{
	const char *slash = image->path ? strrchr(image->path, '/') : NULL;

	if (slash)
		snprintf(t->comm, sizeof(t->comm), "%.15s", slash + 1);
}

/* Notes the thread of a chunk, because meta may lack that thread. */
static int add_thread(struct scan *s, const struct pb_chunk *c)
{
	struct pb_thread *t = s->nr_seen ? &s->seen[s->nr_seen - 1] : NULL;

	if (!t || t->serial != c->serial) {
		if (s->nr_seen == s->seen_room) {
			size_t room = s->seen_room ? s->seen_room * 2 : 64;

			t = realloc(s->seen, room * sizeof(*t));
			if (!t)
				return -ENOMEM;
			s->seen = t;
			s->seen_room = room;
		}
		t = &s->seen[s->nr_seen++];
		*t = (struct pb_thread){ .serial = c->serial, .pid = c->pid, .tid = c->tid,
					 .start = c->start };
		pb_thread_name_after(t, &s->d->images[pb_data_image(s->d, c->image)]);
	}
	if (c->lost > t->lost)
		t->lost = c->lost;
	if (c->no_return > t->no_return)
		t->no_return = c->no_return;
	if (c->missed > t->missed)
		t->missed = c->missed;
	return 0;
}

/* If the end of the file isn't shown, or is missing, adds a note. `at` is the end of the data that
 * is shown. short_chunk: the file ends in the middle of the last chunk. */
static void note_rest(struct pb_data *d, uint64_t at, bool short_chunk)
{
	unsigned long long from = at, size = d->chunks_size;

	if (!short_chunk && size - at >= sizeof(struct pb_chunk)) {
		d->damaged = true;
		pb_data_note(d, "the file `chunks' is damaged at byte %llu of %llu: the rest isn't "
				"shown", from, size);
	} else if ((short_chunk || at < size) && d->ended) {
		d->damaged = true;
		pb_data_note(d, "the file `chunks' is cut off after byte %llu: the rest is missing",
			     size);
	}
	/* Without PB_META_END, a chunk that isn't whole is no damage, because the recorder may have
	 * been killed in the middle of a write. open.c notes that the recorder was killed. */
}

static int scan_file(struct scan *s)
{
	struct pb_data *d = s->d;
	uint64_t at = sizeof(struct pb_data_header);
	struct pb_chunk c;
	bool cut = false;

	while (!cut && d->chunks_size - at >= sizeof(c)) {
		uint64_t room = d->chunks_size - at - sizeof(c);
		uint32_t used;
		int ret;

		if (pread(d->chunks_fd, &c, sizeof(c), (off_t)at) != sizeof(c) ||
		    !pb_chunk_header_ok(&c))
			break;
		used = c.used > room ? (uint32_t)(room & ~7ull) : c.used;
		ret = count_buffer(d, c.buffer);
		if (!ret && c.buffer == d->buffer)
			ret = add_ref(s, &c, at, used);
		if (!ret && c.buffer == d->buffer)
			ret = add_thread(s, &c);
		if (ret)
			return ret;
		at += sizeof(c) + used;
		cut = used < c.used;
	}
	note_rest(d, at, cut);
	return 0;
}

#define MAX_SLOTS	(1u << 30)	/* no ring has more chunks */

/* Returns the next slot after this one that isn't in a hole of the file `open`. */
static uint64_t next_slot(const struct pb_data *d, uint64_t slot)
{
	off_t data = lseek(d->open_fd, (off_t)(slot + 2) * PB_CHUNK_SIZE, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? MAX_SLOTS : slot + 1;
	return (uint64_t)data / PB_CHUNK_SIZE - 1;
}

/* Returns whether the file `open` exists and was written by Patchbay. A file without data is no
 * damage: the recorder has just made it. */
static bool open_is_valid(struct pb_data *d)
{
	char why[256];
	struct stat st;

	if (d->open_fd < 0 || fstat(d->open_fd, &st) || (S_ISREG(st.st_mode) && !st.st_size))
		return false;
	if (!pb_data_check_header(d, "open", d->open_fd, PB_DATA_MAGIC_OPEN, why, sizeof(why)))
		return true;
	d->damaged = true;
	pb_data_note(d, "the file `open' is damaged: the newest calls may be missing");
	return false;
}

/* Adds the chunks that weren't full when they were copied (open_chunks.h). The file may have holes
 * of any size. So after a slot without a chunk, the scan goes on at the next data (SEEK_DATA). */
static int scan_open(struct scan *s)
{
	struct pb_data *d = s->d;
	struct pb_chunk c;
	uint64_t next;
	int ret = 0;

	if (!open_is_valid(d))
		return 0;
	for (uint64_t slot = 0; !ret && slot < MAX_SLOTS; slot = next) {
		off_t at = (off_t)(slot + 1) * PB_CHUNK_SIZE;

		if (pread(d->open_fd, &c, sizeof(c), at) != sizeof(c))
			break;
		next = pb_chunk_header_ok(&c) ? slot + 1 : next_slot(d, slot);
		if (!pb_chunk_header_ok(&c) || c.buffer != d->buffer)
			continue;
		ret = add_ref(s, &c, pb_open_chunk_ref(&c, (uint32_t)slot).offset, c.used);
		if (!ret)
			ret = add_thread(s, &c);
	}
	return ret;
}

static void merge_thread(struct pb_thread *to, const struct pb_thread *from)
{
	if (from->lost > to->lost)
		to->lost = from->lost;
	if (from->no_return > to->no_return)
		to->no_return = from->no_return;
	if (from->missed > to->missed)
		to->missed = from->missed;
	if (!*to->comm)
		memcpy(to->comm, from->comm, sizeof(to->comm));
	if (!to->tid) {
		to->pid = from->pid;
		to->tid = from->tid;
	}
}

/* Returns true if the thread must be left out. The losses in meta belong to the main buffer. So if
 * the reader reads another buffer, this function sets the losses to 0, and leaves out the threads
 * that have no chunks in that buffer. */
static bool leave_out(const struct pb_data *d, struct pb_thread *t, bool meta, uint32_t serial)
{
	if (!d->buffer || !meta)
		return false;
	t->lost = t->discarded = t->no_return = t->missed = 0;
	return t->serial != serial;
}

/* Merges the threads that are listed in meta with the threads that were found in chunks. */
static int merge_threads(struct scan *s)
{
	struct pb_data *d = s->d;
	struct pb_thread *all = calloc(d->nr_threads + s->nr_seen + 1, sizeof(*all));
	size_t nr = 0, i = 0, j = 0;

	if (!all)
		return -ENOMEM;
	if (s->nr_seen)
		qsort(s->seen, s->nr_seen, sizeof(*s->seen), pb_data_by_serial);
	while (i < d->nr_threads || j < s->nr_seen) {
		bool meta = j == s->nr_seen ||
			    (i < d->nr_threads && d->threads[i].serial <= s->seen[j].serial);
		struct pb_thread *t = meta ? &d->threads[i++] : &s->seen[j++];

		if (leave_out(d, t, meta, j < s->nr_seen ? s->seen[j].serial : 0))
			continue;
		if (nr && all[nr - 1].serial == t->serial)
			merge_thread(&all[nr - 1], t);
		else
			all[nr++] = *t;
	}
	free(d->threads);
	d->threads = all;
	d->nr_threads = nr;
	return 0;
}

static void order_chunks(struct pb_data *d)
{
	size_t to = 0, thread = 0;

	if (!d->nr_chunks)
		return;
	qsort(d->chunks, d->nr_chunks, sizeof(*d->chunks), by_thread);
	for (size_t i = 0; i < d->nr_chunks; i++) {
		struct pb_chunk_ref *c = &d->chunks[i];

		if (to && d->chunks[to - 1].serial == c->serial && d->chunks[to - 1].seq == c->seq)
			continue;
		d->chunks[to++] = *c;
	}
	d->nr_chunks = to;
	for (size_t i = 0; i < to; i++) {
		while (d->threads[thread].serial != d->chunks[i].serial)
			thread++;
		if (!d->threads[thread].nr++) {
			d->threads[thread].first = i;
			d->threads[thread].start = d->chunks[i].start;
		}
	}
}

/* True if no chunk is missing. Lost records don't matter: if the ENTRY of a call was lost, the call
 * has no EXIT, either. */
static bool is_whole(const struct pb_data *d)
{
	for (size_t i = 0; i < d->nr_threads; i++) {
		const struct pb_thread *t = &d->threads[i];

		if (t->nr && d->chunks[t->first + t->nr - 1].seq != t->nr - 1)
			return false;
	}
	return !d->damaged && !d->end.overwritten && (d->buffer || !d->end.chunks_overwritten);
}

int pb_data_load_index(struct pb_data *d, char *err, size_t errlen)
{
	struct scan s = { .d = d };
	int ret = scan_file(&s);

	if (!ret)
		ret = scan_open(&s);
	if (!ret)
		ret = merge_threads(&s);
	if (!ret)
		order_chunks(d);
	d->whole = !ret && is_whole(d);
	free(s.seen);
	if (ret)
		snprintf(err, errlen, "%s: out of memory for an index of %zu chunks", d->dir,
			 d->nr_chunks);
	return ret;
}
