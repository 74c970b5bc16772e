/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes the records of one thread. The writer's position is one word, an address. An
 * xadd without a lock prefix reserves a record. The position also gives the chunk,
 * because chunks are aligned to PB_CHUNK_SIZE. A position in the last
 * PB_CHUNK_DEAD_ZONE bytes means that the chunk is full.
 *
 * A handler may interrupt the code just after the xadd, and leave by a jump. The
 * reservation is then abandoned. Many abandoned reservations must not carry the
 * position across the dead zone. So pb_writer_stay() sets a position in the dead zone
 * back to the zone's beginning. The slow path begins with this call. So does every
 * handler that interrupts the agent's code.
 *
 * A handler may change chunks after the reservation. The assembly compares the position
 * with `base` to find out whether it is in the chunk in force. While `base` is 0, every
 * record takes the slow path, which computes the chunk from the position instead. The
 * code that changes chunks is in change.c.
 */
#include "ring/writer.h"
#include "base/base.h"
#include "base/mem.h"

void pb_writer_init(struct pb_writer *w, uint32_t pid, uint32_t tid, uint32_t image)
{
	struct pb_ring *ring = pb_ring_map.ring;

	*w = (struct pb_writer){
		.pos = pb_no_chunk + PB_CHUNK_LIMIT, .leaf = pb_no_leaf,
		.pid = pid, .tid = tid, .image = image,
	};
	for (int i = 0; i < PB_WRITER_PENDING; i++)
		w->pending[i].limit = PB_NO_LIMIT;
	w->serial = __atomic_add_fetch(&ring->next_serial, 1, __ATOMIC_RELAXED);
	w->last = pb_ring_clock();
	if (w->serial - 1 < pb_ring_map.nr_threads) {
		w->thread = &pb_ring_map.threads[w->serial - 1];
		w->thread->pid = pid;
		w->thread->tid = tid;
		w->thread->image = image;
		w->thread->start = w->last;
		__atomic_store_n(&w->thread->serial, w->serial, __ATOMIC_RELEASE);
	} else {
		__atomic_add_fetch(&ring->threads_lost, 1, __ATOMIC_RELAXED);
	}
}

void pb_writer_void(struct pb_writer *w)
{
	w->pos = pb_no_chunk + PB_CHUNK_LIMIT;
	w->base = 0;
	w->leaf = pb_no_leaf;
}

void pb_writer_leaf(struct pb_writer *w, uint32_t site, uint64_t start)
{
	struct pb_owner o = pb_writer_owner(w);
	uint64_t *leaf = w->leaf;

	if (leaf == pb_no_leaf)
		return;
	/* keep the upper half: `missed`, which is written only when a chunk begins */
	pb_own_store(o, leaf + 1, (leaf[1] >> 32) << 32 | site);
	pb_own_store(o, leaf, start);
}

/* The counter of all threads that have no entry in the ring's table. Its value isn't used. */
static uint64_t no_entry;

void pb_writer_lost(struct pb_writer *w)
{
	struct pb_owner o = pb_writer_owner(w);

	/* the chunk's header may name this call as the open leaf */
	if (*w->leaf)
		pb_own_store(o, w->leaf, 0);
	if (!w->thread)
		pb_ring_call_lost();
	/* w->lost is copied to the headers of chunks, and must never be larger than the table's
	 * count. A handler may jump away between the two additions. So the table's count is
	 * increased first. */
	pb_own_count(o, w->thread ? &w->thread->lost : &no_entry, &w->lost);
}

void pb_writer_late(struct pb_writer *w, struct pb_owner o)
{
	if (w->thread)
		pb_own_count(o, &w->thread->late, &no_entry);
	else if (pb_writer_is(o))
		__atomic_add_fetch(&pb_ring_map.ring->calls_late, 1, __ATOMIC_RELAXED);
}

void pb_writer_regained(struct pb_writer *w, struct pb_owner o)
{
	if (w->thread)
		pb_own_count(o, &w->thread->regained, &no_entry);
	else if (pb_writer_is(o))
		__atomic_add_fetch(&pb_ring_map.ring->calls_regained, 1, __ATOMIC_RELAXED);
}

void pb_ring_call_lost(void)
{
	__atomic_add_fetch(&pb_ring_map.ring->calls_lost, 1, __ATOMIC_RELAXED);
}

static void missed(struct pb_writer *w, struct pb_owner o)
{
	pb_own_count(o, w->thread ? &w->thread->missed : &no_entry, &w->missed);
}

void pb_writer_missed(struct pb_writer *w)
{
	missed(w, pb_writer_owner(w));
}

void pb_writer_no_return(struct pb_writer *w)
{
	struct pb_owner o = pb_writer_owner(w);

	if (!w->thread)
		__atomic_add_fetch(&pb_ring_map.ring->calls_no_return, 1, __ATOMIC_RELAXED);
	pb_own_count(o, w->thread ? &w->thread->no_return : &no_entry,
		     &w->no_return);
}

static uint64_t *reserve(struct pb_writer *w, struct pb_owner o, unsigned words,
			 const void *ending)
{
	for (int tries = 0; tries < 4; tries++) {
		uint64_t pos = pb_xadd_local(&w->pos, words * 8);
		uint64_t chunk = pb_chunk_of(pos);

		if (pb_likely(pos - chunk < PB_CHUNK_LIMIT)) {
			/* a handler may have interrupted the code that sets base and leaf, and left
			 * by a jump */
			if (pb_unlikely(w->base != chunk || w->leaf == pb_no_leaf))
				pb_change_mend(w);
			return (uint64_t *)pos;
		}
		pb_writer_stay(w);
		if (!pb_change_chunk(w, o, chunk, ending))
			break;
	}
	pb_writer_stay(w);
	return NULL;
}

void pb_writer_close(struct pb_writer *w)
{
	pb_change_close(w);
}

static unsigned time_shift(unsigned bits)
{
	return 64 - bits;
}

static bool time_fits(const struct pb_writer *w, uint64_t time, unsigned bits)
{
	return (time - w->last) >> (bits - 1) == 0;
}

/* Marks n words at p as UNDONE before they are written. If a handler leaves by a jump before the
 * words are complete, no reader takes them for a record. Returns the value that end_words() gets as
 * `before`. */
static uint64_t begin_words(struct pb_writer *w, struct pb_owner o, uint64_t *p, unsigned n)
{
	uint64_t before = w->undone;

	w->undone = pb_chunk_of((uint64_t)p);
	pb_barrier();
	pb_own_store(o, p, pb_ext_word(PB_EXT_UNDONE, n, 0, 0));
	pb_barrier();
	return before;
}

/* Stores the first word, which makes the words a record. If certainly no code is interrupted, no
 * other words can be undone, and `before` is ignored. */
static void end_words(struct pb_writer *w, struct pb_owner o, uint64_t *p, uint64_t first,
		      uint64_t before)
{
	pb_own_store(o, p, first);
	w->undone = w->nr_pending || pb_ring_unseen ? before : 0;
}

/* For a forked child: the record is the parent's, so the child doesn't write it. p is the address
 * of the reserved words, or NULL. If the fork came before the reservation, the child has reserved
 * the words, and a PAD fills each of them. Otherwise the parent has reserved them. Since then the
 * child may have taken the chunk that holds these words, and may have written its own records
 * there. So a PAD is stored only into a word that the child has reserved and not written. */
static void leave_words(struct pb_writer *w, const uint64_t *p, unsigned n)
{
	struct pb_owner now = pb_writer_owner(w);

	w->backoff = 0;		/* the parent found no chunk; the child may find one */
	for (unsigned i = 0; p && i < n; i++) {
		uint64_t at = (uint64_t)(p + i), pos = w->pos;

		if (!p[i] && (at < pos || pb_chunk_of(at) != pb_chunk_of(pos)))
			pb_own_store(now, (uint64_t *)at, pb_ext_word(PB_EXT_PAD, 1, 0, 0));
	}
}

static bool put(struct pb_writer *w, uint64_t word, uint64_t time, unsigned bits,
		const uint64_t *payload, unsigned nr, const void *ending)
{
	unsigned escape = time_fits(w, time, bits) ? 0 : PB_EXT_TIME_WORDS;
	struct pb_owner o = pb_writer_owner(w);
	uint64_t *p, before;

	for (;;) {
		p = reserve(w, o, escape + 1 + nr, ending);
		if (pb_unlikely(!pb_writer_is(o))) {
			leave_words(w, p, escape + 1 + nr);
			return true;
		}
		if (!p)
			return false;
		if (escape || time_fits(w, time, bits))
			break;
		/* a handler's record has changed `last`: reserve again, with room for a TIME */
		pb_own_store(o, p, pb_ext_word(PB_EXT_PAD, 1 + nr, 0, 0));
		escape = PB_EXT_TIME_WORDS;
	}
	w->last = time;
	word |= time << time_shift(bits);
	if (!escape && !nr) {
		pb_own_store(o, p, word);
		return true;
	}
	before = begin_words(w, o, p, escape + 1 + nr);
	for (unsigned i = 0; i < nr; i++)
		pb_own_store(o, &p[escape + 1 + i], payload[i]);
	if (escape) {
		pb_own_store(o, &p[1], time);
		pb_own_store(o, &p[escape], word);
		word = pb_ext_record(TIME, 0, 0);
	}
	end_words(w, o, p, word, before);
	return true;
}

bool pb_writer_put(struct pb_writer *w, uint64_t word, uint64_t time, unsigned bits,
		   const uint64_t *payload, unsigned nr)
{
	if (put(w, word, time, bits, payload, nr, NULL))
		return true;
	pb_writer_lost(w);
	return false;
}

bool pb_writer_put_entry(struct pb_writer *w, uint64_t word, uint64_t time)
{
	return put(w, word, time, PB_TIME_BITS, NULL, 0, NULL);
}

bool pb_writer_put_end(struct pb_writer *w, uint64_t word, uint64_t time, unsigned bits,
		       const uint64_t *payload, unsigned nr, const void *ending)
{
	struct pb_owner o = pb_writer_owner(w);

	if (put(w, word, time, bits, payload, nr, ending))
		return true;
	missed(w, o);
	return false;
}

/* Writes a record without a time field. `last` is the time from which a decoder counts the next
 * record's time. */
static bool put_plain(struct pb_writer *w, uint64_t word, uint64_t last, const uint64_t *payload,
		      unsigned nr)
{
	struct pb_owner o = pb_writer_owner(w);
	uint64_t *p = reserve(w, o, 1 + nr, NULL), before;

	if (pb_unlikely(!pb_writer_is(o))) {
		leave_words(w, p, 1 + nr);
		return true;
	}
	if (!p)
		return false;
	w->last = last;
	before = begin_words(w, o, p, 1 + nr);
	for (unsigned i = 0; i < nr; i++)
		pb_own_store(o, &p[1 + i], payload[i]);
	end_words(w, o, p, word, before);
	return true;
}

bool pb_writer_put_long(struct pb_writer *w, uint32_t site, uint64_t start, uint64_t end)
{
	uint64_t payload[] = { start, end };

	if (put_plain(w, pb_ext_record(LONG, site, 0), end, payload, 2))
		return true;
	pb_writer_lost(w);
	return false;
}

bool pb_writer_put_untimed(struct pb_writer *w, uint64_t word, const uint64_t *payload,
			   unsigned nr)
{
	struct pb_owner o = pb_writer_owner(w);

	if (put_plain(w, word, w->last, payload, nr))
		return true;
	missed(w, o);
	return false;
}
