/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A writer's position is one word, so that taking a new chunk is published by
 * one cmpxchg: its end follows from the address (chunks are PB_CHUNK_SIZE
 * aligned). Reservation is xadd; a position in the last PB_CHUNK_DEAD_ZONE
 * bytes means that the chunk is full. A handler that interrupts between xadd
 * and that test adds at most a record, the dead zone has room for dozens.
 *
 * `base` tells the assembly whether a position is in the present chunk: a handler
 * may have left the one in which it was reserved. It is 0
 * (everybody goes the slow way, which masks) from before the position changes
 * until after, and is set by cmpxchg from 0, so that who was interrupted can't
 * put a stale one back.
 */
#include "ring/writer.h"
#include "base/base.h"
#include "base/mem.h"
#include "ring/supply.h"

#define CHUNK_LIMIT	(PB_CHUNK_SIZE - PB_CHUNK_DEAD_ZONE)
#define OPEN_MAX_WORDS	(PB_CHUNK_OPEN_MAX * PB_EXT_OPEN_WORDS)
#define BACKOFF		64

struct pb_ring_map pb_ring_map;
uint8_t pb_ring_unseen = PB_UNSEEN_PROGRAM;
size_t (*pb_ring_open_calls)(struct pb_writer *w, uint64_t *out, size_t max, uint32_t *depth,
			     const void *ending);
uint64_t (*pb_ring_clock)(void);

/* Where the position stands while a thread has no chunk: always full. Twice
 * the size, as positions may run past the end. Never written. */
static uint8_t no_chunk_space[3 * PB_CHUNK_SIZE];
static uint64_t no_chunk;
static uint64_t no_leaf[2];

int pb_ring_attach(void *base, uint64_t mapped, uint32_t nr_threads, uint32_t nr_chunks,
		   uint64_t threads_offset, uint64_t chunks_offset, uint32_t mode)
{
	struct pb_ring *ring = base;

	if (ring->magic != PB_RING_MAGIC || ring->version != PB_RING_VERSION)
		return -22;
	if (threads_offset > mapped || chunks_offset > mapped || chunks_offset % PB_CHUNK_SIZE ||
	    (uintptr_t)base % PB_CHUNK_SIZE ||
	    nr_threads > (mapped - threads_offset) / sizeof(struct pb_ring_thread) ||
	    nr_chunks > (mapped - chunks_offset) / PB_CHUNK_SIZE || nr_chunks < 1)
		return -22;
	no_chunk = pb_align_up((uint64_t)no_chunk_space, (uint64_t)PB_CHUNK_SIZE);
	pb_ring_map = (struct pb_ring_map){
		.ring = ring, .nr_threads = nr_threads, .nr_chunks = nr_chunks, .mode = mode,
		.threads = (void *)((uint8_t *)base + threads_offset),
		.chunks = (uint8_t *)base + chunks_offset,
	};
	return 0;
}

static uint64_t xadd(uint64_t *p, uint64_t add)
{
	__asm__ volatile("xaddq %0, %1" : "+r"(add), "+m"(*p) : : "memory", "cc");
	return add;
}

/* Atomic against this thread's signal handlers only. */
static bool cmpxchg(uint64_t *p, uint64_t old, uint64_t new)
{
	bool ok;

	__asm__ volatile("cmpxchgq %3, %1; sete %0"
			 : "=q"(ok), "+m"(*p), "+a"(old) : "r"(new) : "memory", "cc");
	return ok;
}

static void zero_words(void *p, size_t words)
{
	__asm__ volatile("rep stosq" : "+D"(p), "+c"(words) : "a"(0ul) : "memory");
}

void pb_writer_init(struct pb_writer *w, uint32_t pid, uint32_t tid, uint32_t image)
{
	struct pb_ring *ring = pb_ring_map.ring;

	zero_words(w, sizeof(*w) / 8);
	w->pos = no_chunk + CHUNK_LIMIT;
	w->leaf = no_leaf;
	w->pid = pid;
	w->tid = tid;
	w->image = image;
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

/* None of n words is zero: the usual chunk, looked at as fast as it can be read. */
static bool no_zero(const uint64_t *p, uint32_t n)
{
	const uint64_t *end = p + n;

	for (; p + 8 <= end; p += 8)
		if (pb_unlikely(!p[0] || !p[1] || !p[2] || !p[3] || !p[4] || !p[5] || !p[6] || !p[7]))
			return false;
	while (p < end)
		if (pb_unlikely(!*p++))
			return false;
	return true;
}

/* Each of n words' records begins with a word that isn't zero. */
static bool no_hole(const uint64_t *data, uint32_t n)
{
	for (uint32_t i = 0; i < n;) {
		uint64_t word = data[i];
		uint32_t len = word & PB_TAG_MASK ? 1 : word >> PB_EXT_LEN_SHIFT & 0xff;

		if (!word)
			return false;
		i += len ? len : 1;
	}
	return true;
}

/* Words of the list of open calls, whose starts may be zeros. */
static uint32_t listed(const uint64_t *data)
{
	uint16_t head = (uint16_t)pb_ext_word(PB_EXT_OPEN, PB_EXT_OPEN_WORDS, 0, 0);
	uint32_t n = 0;

	while (n < OPEN_MAX_WORDS && (uint16_t)data[n] == head)
		n += PB_EXT_OPEN_WORDS;
	return n;
}

/* Bytes up to the last word that is not zero. */
static uint32_t chunk_used(const struct pb_chunk *c)
{
	const uint64_t *data = (const uint64_t *)(c + 1);
	uint32_t end = (PB_CHUNK_SIZE - PB_CHUNK_HEADER) / 8;

	while (end && !data[end - 1])
		end--;
	return end * 8;
}

/* No record is missing. A chunk that is left was reserved to its limit: less is a
 * hole at its end. */
static bool is_whole(const struct pb_chunk *c)
{
	const uint64_t *data = (const uint64_t *)(c + 1);
	uint32_t end = c->used / 8, from = listed(data);

	return PB_CHUNK_HEADER + c->used >= CHUNK_LIMIT &&
	       (end <= from || no_zero(data + from, end - from) || no_hole(data + from, end - from));
}

/* Only what was interrupted leaves holes that somebody is still to fill. */
static bool may_have_holes(const struct pb_writer *w)
{
	return pb_ring_unseen || w->interrupted;
}

/* The chunk is left: FULL, or HELD while somebody is still to fill a hole. */
static void close_chunk(struct pb_writer *w, struct pb_chunk *c)
{
	c->used = chunk_used(c);
	if (!may_have_holes(w) || is_whole(c)) {
		__atomic_store_n(&c->state, PB_CHUNK_FULL, __ATOMIC_RELEASE);
		return;
	}
	__atomic_store_n(&c->state, PB_CHUNK_HELD, __ATOMIC_RELEASE);
	for (int i = 0; i < PB_WRITER_HELD; i++)
		if (cmpxchg((uint64_t *)&w->held[i], 0, (uint64_t)c))
			return;
}

/* One of ours becomes FULL, unless the reader took it meanwhile: then somebody
 * else may have it by now. READING keeps both away while `used` is set. */
static void settle_chunk(struct pb_chunk *c, uint32_t state, uint32_t serial)
{
	if (!pb_chunk_change_state(c, state, serial, PB_CHUNK_READING, serial))
		return;
	c->used = chunk_used(c);
	__atomic_store_n(&c->state, PB_CHUNK_FULL, __ATOMIC_RELEASE);
}

static void check_held(struct pb_writer *w)
{
	for (int i = 0; i < PB_WRITER_HELD; i++) {
		struct pb_chunk *c = w->held[i];

		if (!c)
			continue;
		c->used = chunk_used(c);
		if (is_whole(c) && cmpxchg((uint64_t *)&w->held[i], (uint64_t)c, 0))
			settle_chunk(c, PB_CHUNK_HELD, w->serial);
	}
}

/* `full` is left once only, for the chunk that has the next number: one that a
 * handler's takes the place of, or that a handler left by a jump, leaves no gap. */
static uint64_t next_number(const struct pb_writer *w, uint64_t full)
{
	return full == no_chunk ? w->seq : ((const struct pb_chunk *)full)->seq + 1;
}

static uint64_t *fill_header(struct pb_writer *w, struct pb_chunk *c, uint64_t full,
			     const void *ending)
{
	uint64_t *data = (uint64_t *)(c + 1);
	uint32_t depth = 0;

	c->leaf_start = 0;
	if (c->uses)
		zero_words(data, (PB_CHUNK_SIZE - PB_CHUNK_HEADER) / 8);
	c->uses++;
	c->buffer = w->buffer;
	c->image = w->image;
	c->pid = w->pid;
	c->tid = w->tid;
	c->seq = next_number(w, full);
	c->start = w->last;
	c->stack = w->stack;
	c->lost = w->lost;
	c->no_return = w->no_return;
	c->leaf_site = 0;
	data += pb_ring_open_calls(w, data, OPEN_MAX_WORDS, &depth, ending);
	c->depth = depth;
	if (w->lost != w->lost_told) {
		*data++ = pb_ext_word(PB_EXT_LOST, 2, 0, 0);
		*data++ = w->lost - w->lost_told;
	}
	/* until now what it held before: there is no record of the thread's in it */
	pb_barrier();
	c->used = (uint32_t)((uint64_t)data - (uint64_t)(c + 1));
	return data;
}

/* The position still is where a full chunk leaves it: no handler moved it. */
static bool still_full(uint64_t pos, uint64_t chunk)
{
	return pos - chunk >= CHUNK_LIMIT && pos - chunk < PB_CHUNK_SIZE + PB_CHUNK_HEADER;
}

static void set_base(struct pb_writer *w)
{
	cmpxchg(&w->base, 0, w->pos & -(uint64_t)PB_CHUNK_SIZE);
}

/* A new chunk in place of the full one at that address. False if there is
 * none. A handler that did it meanwhile wins. */
static bool next_chunk(struct pb_writer *w, uint64_t full, const void *ending)
{
	struct pb_chunk *c;
	uint64_t pos, start;

	if (w->backoff) {
		w->backoff--;
		return false;
	}
	check_held(w);
	c = pb_supply_take(w->serial);
	if (!c) {
		if (pb_ring_map.mode != PB_RING_OVERWRITE)
			w->backoff = BACKOFF;
		return false;
	}
	start = (uint64_t)fill_header(w, c, full, ending);
	w->base = 0;
	pb_barrier();
	do {
		pos = w->pos;
		if (!still_full(pos, full)) {
			__atomic_store_n(&c->state, PB_CHUNK_FREE, __ATOMIC_RELEASE);
			set_base(w);
			return true;
		}
	} while (!cmpxchg(&w->pos, pos, start));
	set_base(w);
	/* from here on handlers may have gone further already */
	w->lost_told = w->lost;
	w->chunk = (void *)(w->pos & -(uint64_t)PB_CHUNK_SIZE);
	w->leaf = &w->chunk->leaf_start;
	if (full != no_chunk)
		close_chunk(w, (void *)full);
	return true;
}

void pb_writer_stay(struct pb_writer *w)
{
	uint64_t pos = w->pos, chunk = pos & -(uint64_t)PB_CHUNK_SIZE;

	if (pos - chunk >= CHUNK_LIMIT)
		cmpxchg(&w->pos, pos, chunk + CHUNK_LIMIT);
}

static uint64_t *reserve(struct pb_writer *w, unsigned words, const void *ending)
{
	for (int tries = 0; tries < 4; tries++) {
		uint64_t pos = xadd(&w->pos, words * 8);
		uint64_t chunk = pos & -(uint64_t)PB_CHUNK_SIZE;

		if (pb_likely((pos & (PB_CHUNK_SIZE - 1)) < CHUNK_LIMIT))
			return (uint64_t *)pos;
		if (!next_chunk(w, chunk, ending)) {
			pb_writer_stay(w);
			break;
		}
	}
	w->lost++;
	if (w->thread)
		w->thread->lost = w->lost;
	return NULL;
}

void pb_writer_close(struct pb_writer *w)
{
	struct pb_chunk *c = w->chunk;

	if (c)
		w->seq = c->seq + 1;
	w->base = 0;
	w->pos = no_chunk + CHUNK_LIMIT;
	w->chunk = NULL;
	w->leaf = no_leaf;
	if (c)
		settle_chunk(c, PB_CHUNK_OPEN, w->serial);
	for (int i = 0; i < PB_WRITER_HELD; i++) {
		if (w->held[i])
			settle_chunk(w->held[i], PB_CHUNK_HELD, w->serial);
		w->held[i] = NULL;
	}
}

static unsigned time_shift(unsigned bits)
{
	return 64 - bits;
}

static bool time_fits(const struct pb_writer *w, uint64_t time, unsigned bits)
{
	return (time - w->last) >> (bits - 1) == 0;
}

void pb_writer_put_end(struct pb_writer *w, uint64_t word, uint64_t time, unsigned bits,
		       const uint64_t *payload, unsigned nr, const void *ending)
{
	bool escape = !time_fits(w, time, bits);
	uint64_t *p;

	for (;;) {
		p = reserve(w, 1 + nr + (escape ? PB_EXT_TIME_WORDS : 0), ending);
		if (!p)
			return;
		if (escape || time_fits(w, time, bits))
			break;
		/* a handler wrote meanwhile: not in these words, then */
		*p = pb_ext_word(PB_EXT_PAD, 1 + nr, 0, 0);
		escape = true;
	}
	w->last = time;
	if (escape) {
		p[1] = time;
		*p = pb_ext_word(PB_EXT_TIME, PB_EXT_TIME_WORDS, 0, 0);
		p += PB_EXT_TIME_WORDS;
	}
	for (unsigned i = 0; i < nr; i++)
		p[1 + i] = payload[i];
	pb_barrier();
	*p = word | time << time_shift(bits);
}

void pb_writer_put(struct pb_writer *w, uint64_t word, uint64_t time, unsigned bits,
		   const uint64_t *payload, unsigned nr)
{
	pb_writer_put_end(w, word, time, bits, payload, nr, NULL);
}

void pb_writer_put_plain(struct pb_writer *w, uint64_t word, uint64_t last,
			 const uint64_t *payload, unsigned nr)
{
	uint64_t *p = reserve(w, 1 + nr, NULL);

	if (!p)
		return;
	w->last = last;
	for (unsigned i = 0; i < nr; i++)
		p[1 + i] = payload[i];
	pb_barrier();
	*p = word;
}

void pb_writer_no_return(struct pb_writer *w)
{
	w->no_return++;
	if (w->thread)
		w->thread->no_return = w->no_return;
}
