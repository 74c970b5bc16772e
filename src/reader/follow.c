/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Follows a recording (follow.h): finds the new chunks of each thread, and computes the horizon,
 * the time up to which the events of all threads are known. */
#include "reader/follow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/record.h"
#include "base/base.h"
#include "reader/drain.h"
#include "reader/drain_heads.h"
#include "reader/follow_priv.h"
#include "reader/open_chunks.h"
#include "reader/site_names.h"

#define WAIT_ROUNDS	10	/* a chunk that hasn't appeared after this many rounds, and after
				 * two passes of the drain, counts as missing */
#define SPAN_TICKS	(1ull << 30)	/* long enough to compute the clock's rate. Its product with
					 * ten seconds in ns still fits in 64 bits */
#define KEEP_REFS	1024	/* if a thread has at least this many references to chunks that were
				 * read, they are dropped */

/* --- meta ------------------------------------------------------------------ */

/* Copies the threads' names and losses from meta. The recorder writes them to meta when the
 * recording ends. */
static void update_threads(struct pb_follow *f)
{
	for (size_t i = 0; i < f->stream.nr; i++) {
		struct pb_thread *t = f->followers[i].thread;
		const struct pb_thread *m = pb_data_thread(f->data, t->serial);

		if (!m)
			continue;
		t->lost = m->lost > t->lost ? m->lost : t->lost;
		t->no_return = m->no_return;
		t->missed = m->missed;
		if (*m->comm)
			memcpy(t->comm, m->comm, sizeof(t->comm));
	}
}

#define SWAP(a, b) do { __typeof__(a) swap_ = (a); (a) = (b); (b) = swap_; } while (0)

/* Loads meta into a second struct pb_data. Then exchanges the members that depend on meta. */
static int load_meta(struct pb_follow *f)
{
	struct pb_data *d = f->data, *n = calloc(1, sizeof(*n));
	bool modules;
	char err[256];
	int ret = -ENOMEM;

	if (!n)
		return ret;
	n->dir_fd = d->dir_fd;
	n->chunks_fd = n->open_fd = -1;
	n->dir = strdup(d->dir);
	if (n->dir)
		ret = pb_data_load_meta(n, err, sizeof(err));
	n->dir_fd = -1;
	modules = !ret && n->nr_maps != d->nr_maps;
	if (modules) {
		n->symbols = pb_symbols_new(n);
		ret = n->symbols ? 0 : -ENOMEM;
	}
	if (!ret) {
		/* an image may have calls before it has modules, or without ever having any */
		f->modules = modules || n->nr_images != d->nr_images;
		SWAP(d->threads, n->threads);
		SWAP(d->nr_threads, n->nr_threads);
		SWAP(d->images, n->images);
		SWAP(d->nr_images, n->nr_images);
		SWAP(d->maps, n->maps);
		SWAP(d->nr_maps, n->nr_maps);
		SWAP(d->exits, n->exits);
		SWAP(d->nr_exits, n->nr_exits);
		SWAP(d->clock, n->clock);
		SWAP(d->session, n->session);
		SWAP(d->notes, n->notes);
		SWAP(d->nr_notes, n->nr_notes);
		d->ready = n->ready;
		d->end = n->end;
		d->ended = n->ended;
		update_threads(f);
	}
	/* The modules that are loaded remain loaded: their functions have numbers, and to load them
	 * again might fail */
	if (!ret && modules) {
		pb_symbols_move(n->symbols, d->symbols);
		SWAP(d->symbols, n->symbols);
	}
	pb_data_close(n);
	return ret;
}

static int update_meta(struct pb_follow *f)
{
	struct stat st;
	uint64_t span;
	int ret;

	if (fstatat(f->data->dir_fd, "meta", &st, 0))
		return -errno;
	if (st.st_size == f->meta_size)
		return 0;
	ret = load_meta(f);
	if (!ret)
		f->meta_size = st.st_size;
	span = ret ? 0 : pb_clock_span(&f->data->clock, SPAN_TICKS);
	if (span)
		f->delay_ticks = f->delay_ns * SPAN_TICKS / span;
	return ret;
}

/* --- threads and their chunks ---------------------------------------------- */

static int new_thread(struct pb_follow *f, const struct pb_chunk *h, size_t at)
{
	size_t nr = f->stream.nr;
	struct pb_thread *t = calloc(1, sizeof(*t));

	if (nr == f->room && t) {
		size_t room = nr ? 2 * nr : 16;
		void *followers = realloc(f->followers, room * sizeof(*f->followers));

		f->followers = followers ? followers : f->followers;
		void *by_serial = realloc(f->by_serial, room * sizeof(*f->by_serial));

		f->by_serial = by_serial ? by_serial : f->by_serial;
		f->room = followers && by_serial ? room : f->room;
	}
	if (!t || nr == f->room)
		goto nomem;
	*t = (struct pb_thread){ .serial = h->serial, .pid = h->pid, .tid = h->tid,
				 .start = h->start };
	pb_thread_name_after(t, &f->data->images[pb_data_image(f->data, h->image)]);
	if (pb_stream_add(&f->stream, t))
		goto nomem;
	f->followers[nr] = (struct follower){ .thread = t };
	memmove(f->by_serial + at + 1, f->by_serial + at, (nr - at) * sizeof(*f->by_serial));
	f->by_serial[at].serial = h->serial;
	f->by_serial[at].index = nr;
	return 0;
nomem:
	free(t);
	return -ENOMEM;
}

static size_t place_of(const struct pb_follow *f, uint32_t serial)
{
	return pb_bisect(i, 0, f->stream.nr, f->by_serial[i].serial < serial);
}

ssize_t pb_follow_index(const struct pb_follow *f, uint32_t serial)
{
	size_t at = place_of(f, serial);

	return at < f->stream.nr && f->by_serial[at].serial == serial ?
	       (ssize_t)f->by_serial[at].index : -1;
}

uint64_t pb_follow_alive_until(const struct pb_follow *f, size_t n, uint64_t now)
{
	const struct follower *w = &f->followers[n];
	uint64_t latest = f->stream.cursors[n].latest;

	if (w->dead)
		return latest;
	if (w->round == f->round || w->held)
		return now;
	return w->alive > latest ? w->alive : latest;
}

/* Returns the index of the chunk's thread, or -ENOMEM. */
static ssize_t find_thread(struct pb_follow *f, const struct pb_chunk *h)
{
	ssize_t index = pb_follow_index(f, h->serial);

	if (index >= 0)
		return index;
	return new_thread(f, h, place_of(f, h->serial)) ? -ENOMEM : (ssize_t)f->stream.nr - 1;
}

/* Drops the references to chunks that the cursor has read. */
static void drop_refs(struct follower *w, struct pb_cursor *c)
{
	size_t used = c->next_chunk ? c->next_chunk - 1 : 0;

	if (used < KEEP_REFS)
		return;
	memmove(w->refs, w->refs + used, (w->nr - used) * sizeof(*w->refs));
	w->nr -= used;
	w->ready -= used;
	c->nr_refs -= used;
	c->next_chunk -= used;
}

/* Called for a thread's chunk in the file `chunks`. A thread hands over its chunk as FULL. If the
 * chunk has another state, the drain took it from the thread, because the thread is dead or the
 * recording ends. */
static void note_state(const struct pb_follow *f, struct follower *w, uint32_t state)
{
	if (state == PB_CHUNK_FULL)
		return;
	w->dead |= !f->ended;
	w->held |= f->ended;
}

/* Adds a chunk. If there is a reference to an older copy of the chunk, the new reference replaces
 * it. */
static int add_ref(struct pb_follow *f, const struct pb_chunk *h, struct pb_chunk_ref ref)
{
	ssize_t index = find_thread(f, h);
	bool open = ref.offset & PB_CHUNK_REF_OPEN;

	if (index < 0)
		return (int)index;
	struct follower *w = &f->followers[index];
	struct pb_cursor *c = &f->stream.cursors[index];
	size_t at;

	drop_refs(w, c);
	at = pb_bisect(i, 0, w->nr, w->refs[i].seq < ref.seq);
	if (at < w->nr && w->refs[at].seq == ref.seq) {
		bool current = at + 1 == c->next_chunk && c->in_chunk;
		bool left = at < c->next_chunk && !current;
		uint32_t read = w->refs[at].used;

		/* A reference to the whole chunk isn't replaced. If the cursor has left the chunk,
		 * a newer copy of the open chunk doesn't replace the reference either: its `used`
		 * says how much was read. */
		if (!(w->refs[at].offset & PB_CHUNK_REF_OPEN) ||
		    (open && (left || ref.used < read)))
			return 0;
		if (open)
			ref.offset |= w->refs[at].offset & PB_CHUNK_REF_LEFT;
		w->refs[at] = ref;
		if (!open)
			note_state(f, w, h->state);
		if (current)
			pb_cursor_extend(c, &ref, open && !(ref.offset & PB_CHUNK_REF_LEFT));
		if (left && ref.used > read)
			return pb_follow_late_add(f, (size_t)index, &ref, read);
		return 0;
	}
	if (at < w->ready || ref.seq < w->next_seq)
		return 0;	/* the chunk comes too late: it was taken for missing */
	if (w->nr == w->room) {
		size_t room = w->room ? 2 * w->room : 4;
		struct pb_chunk_ref *refs = realloc(w->refs, room * sizeof(*refs));

		if (!refs)
			return -ENOMEM;
		w->refs = refs;
		w->room = room;
	}
	memmove(w->refs + at + 1, w->refs + at, (w->nr - at) * sizeof(ref));
	w->refs[at] = ref;
	w->nr++;
	if (!open)
		note_state(f, w, h->state);
	c->refs = w->refs;
	return 0;
}

static bool read_head(struct pb_follow *f, const struct pb_open_chunks *o, struct pb_chunk *h)
{
	struct pb_drain_heads *q = o ? o->drain->heads : NULL;

	return (q && pb_drain_heads_get(q, f->scanned, h)) ||
	       pread(f->data->chunks_fd, h, sizeof(*h), (off_t)f->scanned) == sizeof(*h);
}

static int scan_chunks(struct pb_follow *f, const struct pb_open_chunks *o, uint64_t size)
{
	struct pb_chunk h;
	int ret = 0;

	while (!ret && size - f->scanned >= sizeof(h)) {
		if (!read_head(f, o, &h) || !pb_chunk_header_ok(&h) ||
		    h.used > size - f->scanned - sizeof(h))
			break;
		if (!h.buffer)
			ret = add_ref(f, &h, (struct pb_chunk_ref){
				.offset = f->scanned, .seq = h.seq, .start = h.start,
				.serial = h.serial, .used = h.used });
		f->scanned += sizeof(h) + h.used;
		f->stream.totals.bytes += sizeof(h) + h.used;
	}
	return ret;
}

static int scan_open(struct pb_follow *f, const struct pb_open_chunks *o)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < o->nr_slots; i++) {
		const struct pb_open_chunk *s = &o->slots[i];
		ssize_t index;

		if (!s->head.serial || s->head.buffer || s->full)
			continue;
		index = find_thread(f, &s->head);
		if (index < 0)
			return (int)index;
		struct follower *w = &f->followers[index];

		if (w->round != f->round || w->open.head.seq <= s->head.seq)
			w->open = *s;
		w->round = f->round;
		w->alive = o->clock;
		/* The list at a chunk's start may name a call whose ENTRY comes right after the
		 * list. So don't read the chunk before it has a record after the list. */
		if (s->head.used > s->listed)
			ret = add_ref(f, &s->head, pb_open_chunk_ref(&s->head, i));
	}
	return ret;
}

/* True if the thread's next chunk may still come. When a chunk is full, its copy in the file `open`
 * is no longer followed. The chunk is in the file `chunks` at the end of the drain's next pass. A
 * pass that has already begun may have gone past the chunk, so two passes must end. On a busy
 * machine, a pass may take longer than many rounds. */
static bool may_come(const struct pb_follow *f, struct follower *w)
{
	/* In the first round of the wait, the chunk may still have been open: its thread has filled
	 * it and begun the next chunk while the open chunks were copied. So the passes count from
	 * the second round on. */
	if (w->waited++ < 2)
		w->wait_passes = f->passes + 2;
	return w->waited <= WAIT_ROUNDS || f->passes < w->wait_passes;
}

/* Lets the cursor read the next chunks up to the first gap. If a chunk is missing, or if only its
 * open copy is known although a later chunk exists, the cursor waits for the chunk. If the wait
 * takes too long, because the chunk is HELD (doc/design/ring.md), the cursor goes on after the
 * copy. */
static void admit(struct pb_follow *f, size_t index, bool ended)
{
	struct follower *w = &f->followers[index];
	struct pb_cursor *c = &f->stream.cursors[index];

	for (; w->ready < w->nr; w->ready++) {
		struct pb_chunk_ref *prev = w->ready ? &w->refs[w->ready - 1] : NULL;
		bool missing = w->refs[w->ready].seq != w->next_seq;
		bool unfinished = prev && prev->offset & PB_CHUNK_REF_OPEN;

		if ((missing || unfinished) && !ended && may_come(f, w))
			break;
		f->data->whole &= !missing;
		if (unfinished) {
			prev->offset |= PB_CHUNK_REF_LEFT;
			c->growing &= c->next_chunk != w->ready;
		}
		w->waited = 0;
		w->next_seq = w->refs[w->ready].seq + 1;
	}
	c->nr_refs = w->ready;
	if (ended)
		c->more = c->growing = false;
}

/* --- the horizon ----------------------------------------------------------- */

bool pb_follow_leaf(const struct pb_follow *f, size_t n, uint32_t *site, uint64_t *start)
{
	const struct follower *w = &f->followers[n];

	if (w->round != f->round || !pb_open_chunk_leaf(&w->open))
		return false;
	*site = w->open.head.leaf_site;
	*start = w->open.head.leaf_start;
	return true;
}

/* Returns the time up to which the n-th thread's events are known. */
static uint64_t known_until(const struct pb_follow *f, size_t n, uint64_t now)
{
	const struct follower *w = &f->followers[n];
	const struct pb_cursor *c = &f->stream.cursors[n];
	uint64_t last = w->nr ? w->refs[w->nr - 1].start : 0;
	bool is_current = w->round == f->round;

	last = c->last > last ? c->last : last;
	if (c->nr_refs < w->nr || (is_current && w->open.incomplete) || (!is_current && c->growing))
		return last < now ? last : now;
	if (is_current && pb_open_chunk_leaf(&w->open) && w->open.head.leaf_start < now)
		return w->open.head.leaf_start;
	return now;
}

static uint64_t horizon(const struct pb_follow *f, uint64_t now)
{
	uint64_t at = now;

	for (size_t i = 0; i < f->stream.nr; i++) {
		uint64_t known = known_until(f, i, now);

		at = known < at ? known : at;
	}
	return now - at > f->delay_ticks ? now - f->delay_ticks : at;
}

/* --- rounds ---------------------------------------------------------------- */

int pb_follow_update(struct pb_follow *f, const struct pb_open_chunks *o, bool by_time)
{
	struct stat st;
	uint64_t size;
	int ret;

	f->ended = !o;
	f->modules = false;
	if (!o && fstat(f->data->chunks_fd, &st))
		return -errno;
	/* read `passes` before `bytes`, so that `bytes` includes what these passes have written */
	f->passes = o ? o->drain->passes : 0;
	size = o ? o->drain->bytes : (uint64_t)st.st_size;
	ret = update_meta(f);
	/* without the names, read no chunks; the next round reads all that is new by then */
	if (pb_data_may_pass(ret) && o && f->skipped < PB_FOLLOW_SKIPS_MAX) {
		f->skipped++;
		return PB_FOLLOW_SKIPPED;
	}
	f->skipped = 0;
	f->modules |= pb_symbols_again(f->data->symbols);
	pb_follow_late_drop(f);
	f->round++;
	f->before = f->latest;
	if (!ret)
		ret = scan_chunks(f, o, size);
	if (!ret && o)
		ret = scan_open(f, o);
	for (size_t i = 0; !ret && i < f->stream.nr; i++)
		admit(f, i, !o);
	if (!ret)
		pb_stream_restart(&f->stream, by_time, o ? horizon(f, o->clock) : UINT64_MAX);
	return ret;
}

bool pb_follow_next(struct pb_follow *f, struct pb_event *ev)
{
	uint64_t key;

	if (!pb_stream_next(&f->stream, ev))
		return false;
	key = ev->kind == PB_EV_LEAF ? ev->start : ev->time;
	if (key < f->before)
		ev->flags |= PB_EV_LATE;
	if (key > f->latest)
		f->latest = key;
	return true;
}

bool pb_follow_modules(const struct pb_follow *f)
{
	return f->modules;
}

bool pb_follow_is_traced(const struct pb_follow *f)
{
	return f->data->ready.start_ns || f->stream.nr;
}

uint64_t pb_follow_done(const struct pb_follow *f)
{
	uint64_t done = f->scanned;

	for (size_t i = 0; i < f->stream.nr; i++) {
		const struct follower *w = &f->followers[i];
		const struct pb_cursor *c = &f->stream.cursors[i];

		/* the chunk that the cursor reads now, and all later chunks, are still needed */
		for (size_t n = c->next_chunk ? c->next_chunk - 1 : 0; n < w->nr; n++)
			if (w->refs[n].offset < done)
				done = w->refs[n].offset;
	}
	return done;
}

struct pb_data *pb_follow_data(struct pb_follow *f)
{
	return f->data;
}

struct pb_stream *pb_follow_stream(struct pb_follow *f)
{
	return &f->stream;
}

struct pb_follow *pb_follow_open(const char *dir, enum pb_demangle how, uint64_t delay_ns,
				 char *err, size_t errlen)
{
	struct pb_follow *f = calloc(1, sizeof(*f));

	snprintf(err, errlen, "%s: out of memory", dir);
	if (!f)
		return NULL;
	f->delay_ns = delay_ns;
	f->scanned = sizeof(struct pb_data_header);
	f->stream.stacks = pb_stacks_new();
	f->data = pb_data_open(dir, 0, err, errlen);
	if (!f->data || !f->stream.stacks) {
		int error = f->data ? ENOMEM : errno;

		if (f->data)
			snprintf(err, errlen, "%s: out of memory", dir);
		pb_follow_close(f);
		errno = error;
		return NULL;
	}
	f->data->followed = true;
	/* forget the chunks and threads that pb_data_open() has found: the first round finds them
	 * again */
	f->data->nr_chunks = f->data->nr_threads = 0;
	f->data->whole = true;
	f->stream.data = f->data;
	pb_symbols_demangle(f->data->symbols, how);
	return f;
}

void pb_follow_close(struct pb_follow *f)
{
	if (!f)
		return;
	pb_follow_late_drop(f);
	for (size_t i = 0; i < f->stream.nr; i++) {
		free(f->followers[i].thread);
		free(f->followers[i].refs);
	}
	pb_stream_close(&f->stream);
	pb_data_close(f->data);
	free(f->followers);
	free(f->by_serial);
	free(f);
}
