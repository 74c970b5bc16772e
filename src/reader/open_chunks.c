/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies open chunks, in a thread of its own (open_chunks.h). */
#include "reader/open_chunks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "abi/record.h"
#include "base/base.h"
#include "reader/drain_priv.h"
#include "reader/record_table.h"

#define COPY_NS		500000000u	/* time between two rounds */
#define ROUND_NS	100000000u	/* time between two rounds if there is a callback `round` */

#define DATA_WORDS ((PB_CHUNK_SIZE - PB_CHUNK_HEADER) / 8)

/* --- a copy -------------------------------------------------------------- */

/* Computes the record's time from the time of the record before it, as the decoder does
 * (decode.c). */
static void note_time(struct pb_open_chunk *s, const uint64_t *record)
{
	uint64_t word = record[0];
	unsigned type = pb_ext_type_of(word);

	switch (word & PB_TAG_MASK) {
	case PB_TAG_LEAF:
		s->last = pb_time_near(s->last, word >> PB_LEAF_SHIFT, PB_LEAF_BITS);
		break;
	case PB_TAG_ENTRY: case PB_TAG_EXIT:
		s->last = pb_time_near(s->last, word >> PB_TIME_SHIFT, PB_TIME_BITS);
		break;
	default:
		if (type == PB_EXT_TIME || type == PB_EXT_LONG)
			s->last = record[type == PB_EXT_TIME ? 1 : 2];
		else if (pb_ext_infos[type].has_time)
			s->last = pb_time_near(s->last, word >> PB_EXT_TIME_SHIFT,
					       PB_EXT_TIME_BITS);
		if (type == PB_EXT_TIME)
			return;
	}
	s->latest = s->last > s->latest ? s->last : s->latest;
}

/* Copies the complete records from word `from` on. Returns the index of the word after the last
 * complete record. */
static uint32_t copy_words(struct pb_open_chunk *s, const uint64_t *words, uint32_t from,
			   uint64_t *to)
{
	uint32_t at = from;

	while (at < DATA_WORDS) {
		uint64_t word = __atomic_load_n(&words[at], __ATOMIC_ACQUIRE);
		unsigned ext = (word & PB_TAG_MASK) == PB_TAG_EXT;
		uint32_t len = ext ? pb_ext_len_of(word) : 1;

		if (!word || (ext && pb_ext_type_of(word) == PB_EXT_UNDONE) ||
		    len > DATA_WORDS - at)
			break;
		to[at - from] = word;
		for (uint32_t i = 1; i < len; i++)
			to[at - from + i] = __atomic_load_n(&words[at + i], __ATOMIC_RELAXED);
		note_time(s, &to[at - from]);
		at += len ? len : 1;
	}
	s->incomplete = false;
	for (uint32_t i = at; i < DATA_WORDS && i < at + PB_CHUNK_DEAD_ZONE / 8; i++)
		s->incomplete |= __atomic_load_n(&words[i], __ATOMIC_RELAXED) != 0;
	return at;
}

static bool is_open(uint32_t state)
{
	return state == PB_CHUNK_OPEN || state == PB_CHUNK_HELD;
}

/* True if the chunk `c` of the ring is still open, and wasn't used again since its count of uses
 * was read. */
static bool is_same(struct pb_chunk *c, const struct pb_chunk *h)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return is_open(pb_drain_state(c)) && __atomic_load_n(&c->serial, __ATOMIC_RELAXED) ==
	       h->serial && __atomic_load_n(&c->seq, __ATOMIC_RELAXED) == h->seq &&
	       __atomic_load_n(&c->uses, __ATOMIC_RELAXED) == h->uses;
}

/* True if the slot's chunk isn't open any more, and the drain hasn't written it yet. Until the
 * drain has written it, the slot must not get another chunk, because a reader may be in the middle
 * of the copy. */
static bool is_unwritten(const struct pb_open_chunks *o, const struct pb_open_chunk *s)
{
	struct pb_chunk *c = pb_drain_chunk(o->drain, s->chunk);
	uint32_t state = pb_drain_state(c);

	return (state == PB_CHUNK_FULL || state == PB_CHUNK_READING) &&
	       __atomic_load_n(&c->serial, __ATOMIC_RELAXED) == s->head.serial &&
	       __atomic_load_n(&c->seq, __ATOMIC_RELAXED) == s->head.seq;
}

static off_t slot_offset(uint32_t slot)
{
	return (off_t)(slot + 1) * PB_CHUNK_SIZE;
}

/* Returns a free slot, or NULL if there is no memory. */
static struct pb_open_chunk *new_slot(struct pb_open_chunks *o, uint32_t chunk)
{
	uint32_t i = 0;

	while (i < o->nr_slots && o->slots[i].head.serial)
		i++;
	if (i == o->nr_slots) {
		uint32_t room = i ? 2 * i : 16;
		struct pb_open_chunk *slots = realloc(o->slots, room * sizeof(*slots));

		if (!slots)
			return NULL;
		memset(slots + i, 0, (room - i) * sizeof(*slots));
		o->slots = slots;
		o->nr_slots = room;
	}
	o->slot_of[chunk] = i + 1;
	return &o->slots[i];
}

static void free_slot(struct pb_open_chunks *o, uint32_t chunk)
{
	if (o->slot_of[chunk])
		o->slots[o->slot_of[chunk] - 1].head.serial = 0;
	o->slot_of[chunk] = 0;
}

/* Writes the words first and the header after them, so that the file has all words that the header
 * counts. A new slot may still have the copy of another chunk. So for a new slot, a header that
 * counts no words is written before the words. */
static bool write_copy(struct pb_open_chunks *o, uint32_t slot, struct pb_chunk *h,
		       const uint64_t *words, uint32_t from, uint32_t to)
{
	size_t bytes = (size_t)(to - from) * 8;
	off_t at = slot_offset(slot);

	h->used = 0;
	if (!from && pwrite(o->fd, h, sizeof(*h), at) != sizeof(*h))
		return false;
	h->used = to * 8;
	return pwrite(o->fd, words, bytes, at + PB_CHUNK_HEADER + from * 8) == (ssize_t)bytes &&
	       pwrite(o->fd, h, sizeof(*h), at) == sizeof(*h);
}

static void copy_chunk(struct pb_open_chunks *o, uint32_t chunk)
{
	struct pb_chunk *c = pb_drain_chunk(o->drain, chunk);
	struct pb_open_chunk *s = o->slot_of[chunk] ? &o->slots[o->slot_of[chunk] - 1] : NULL, new;
	uint64_t words[DATA_WORDS + PB_EXT_LONG_WORDS];
	uint32_t from, to, uses = __atomic_load_n(&c->uses, __ATOMIC_ACQUIRE);

	/* if the count of uses doesn't change from here on, the header was complete before the
	 * chunk became open */
	if (!is_open(pb_drain_state(c)))
		return;
	memcpy(&new.head, c, sizeof(new.head));
	pb_barrier();
	new.head.uses = uses;
	if (s && (s->head.serial != new.head.serial || s->head.seq != new.head.seq)) {
		free_slot(o, chunk);
		s = NULL;
	}
	from = s ? s->head.used / 8 : 0;
	new.chunk = chunk;
	new.full = false;
	new.listed = s ? s->listed : new.head.used;
	new.last = s ? s->last : new.head.start;
	new.latest = s ? s->latest : new.head.start;
	to = copy_words(&new, (const uint64_t *)(c + 1), from, words);
	if (!new.head.serial || !is_same(c, &new.head))
		return;
	/* skip a chunk that has only its list of open calls: it may never be used (abi/ring.h) */
	if (!new.head.leaf_start && to * 8 <= new.listed)
		return;
	if (s)
		s->incomplete = new.incomplete;
	if (s && from == to && s->head.leaf_start == new.head.leaf_start &&
	    s->head.lost == new.head.lost && s->head.missed == new.head.missed)
		return;
	if (!s)
		s = new_slot(o, chunk);
	if (!s)
		return;
	if (write_copy(o, o->slot_of[chunk] - 1, &new.head, words, from, to))
		*s = new;
	else
		free_slot(o, chunk);
}

static void free_slots(struct pb_open_chunks *o)
{
	for (uint32_t i = 0; i < o->nr_slots; i++) {
		struct pb_open_chunk *s = &o->slots[i];

		if (!s->head.serial || is_open(pb_drain_state(pb_drain_chunk(o->drain, s->chunk))))
			continue;
		s->full = is_unwritten(o, s);
		if (!s->full)
			free_slot(o, s->chunk);
	}
}

static void copy_all(struct pb_open_chunks *o)
{
	struct pb_drain *d = o->drain;
	uint32_t high = d->high;

	o->clock = pb_cpu_counter();
	free_slots(o);
	for (uint32_t w = 0; w < pb_ring_taken_words(high); w++)
		for (uint64_t bits = __atomic_load_n(&pb_drain_taken(d)[w], __ATOMIC_ACQUIRE); bits;
		     bits &= bits - 1) {
			uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(bits);

			if (i < high)
				copy_chunk(o, i);
		}
	o->rounds++;
}

/* --- the thread ---------------------------------------------------------- */

static void sleep_for(struct pb_open_chunks *o, uint64_t ns)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ns += (uint64_t)ts.tv_nsec;
	ts.tv_sec += (time_t)(ns / 1000000000u);
	ts.tv_nsec = (long)(ns % 1000000000u);
	pthread_mutex_lock(&o->lock);
	while (!o->stop && !pthread_cond_timedwait(&o->wake, &o->lock, &ts))
		;
	pthread_mutex_unlock(&o->lock);
}

static void *copier_main(void *arg)
{
	struct pb_open_chunks *o = arg;

	bool copy = true;

	prctl(PR_SET_NAME, "patchbay-reader");
	while (!o->stop) {
		if (copy)
			copy_all(o);
		if (o->round)
			copy = o->round(o->arg, o);
		sleep_for(o, o->round ? ROUND_NS : COPY_NS);
	}
	return NULL;
}

static void init_lock(struct pb_open_chunks *o)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&o->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&o->wake, &attr);
	pthread_condattr_destroy(&attr);
}

static void end_lock(struct pb_open_chunks *o)
{
	pthread_cond_destroy(&o->wake);
	pthread_mutex_destroy(&o->lock);
}

int pb_open_chunks_start(struct pb_open_chunks *o)
{
	sigset_t all, old;
	int ret;

	if (o->drain->geometry.mode == PB_RING_OVERWRITE)
		return 0;
	o->slot_of = calloc(o->drain->geometry.nr_chunks, sizeof(*o->slot_of));
	if (!o->slot_of)
		return -ENOMEM;
	o->fd = pb_datadir_file(o->drain->datadir, "open", PB_DATA_MAGIC_OPEN);
	if (o->fd < 0) {
		ret = o->fd;
		goto fail;
	}
	init_lock(o);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&o->thread, NULL, copier_main, o);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	o->running = !ret;
	if (!ret)
		return 0;
	end_lock(o);
	close(o->fd);
fail:
	pb_open_chunks_remove(o);
	return ret;
}

void pb_open_chunks_stop(struct pb_open_chunks *o)
{
	if (!o->running)
		return;
	pthread_mutex_lock(&o->lock);
	o->stop = true;
	pthread_cond_signal(&o->wake);
	pthread_mutex_unlock(&o->lock);
	pthread_join(o->thread, NULL);
	o->running = false;
	end_lock(o);
	close(o->fd);
}

void pb_open_chunks_remove(struct pb_open_chunks *o)
{
	if (o->drain->datadir->dir_fd >= 0)
		unlinkat(o->drain->datadir->dir_fd, "open", 0);
	free(o->slots);
	free(o->slot_of);
	o->slots = NULL;
	o->slot_of = NULL;
}
