/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Takes free chunks by compare and exchange. In PB_RING_WAIT mode, waits for the recorder. */
#include "ring/supply.h"
#include "arch/arch.h"
#include "base/base.h"
#include "ring/ring_map.h"

#define SEARCH_WORDS	4096		/* words of taken[] that one search reads: 4 GiB of
					 * chunks */
#define PAUSES		64		/* number of pauses of a waiting thread between two
					 * checks */
#define TICKS_MAX	(1ull << 32)	/* the longest wait, about a second, even if the ring asks
					 * for more */
#define PAUSES_MAX	(1u << 26)
#define STEPS		10		/* the time between two checks counts as at most 1/STEPS
					 * of wait_ticks */

uint64_t (*pb_supply_ticks)(void);

bool pb_chunk_change_state(struct pb_owner o, struct pb_chunk *c, uint32_t state, uint32_t serial,
			   uint32_t new_state)
{
	return pb_own_change(o, (uint64_t *)c, (uint64_t)serial << 32 | state,
			     (uint64_t)o.serial << 32 | new_state);
}

static struct pb_chunk *take_chunk(struct pb_owner o, uint32_t index, uint32_t from)
{
	struct pb_chunk *c = (void *)(pb_ring_map.chunks + (uint64_t)index * PB_CHUNK_SIZE);
	uint64_t word;

	if (!pb_ring_touch(index))
		return NULL;
	word = __atomic_load_n((uint64_t *)c, __ATOMIC_RELAXED);
	if ((uint32_t)word != from)
		return NULL;
	return pb_chunk_change_state(o, c, from, (uint32_t)(word >> 32), PB_CHUNK_TAKEN) ? c : NULL;
}

/* --- free chunks -------------------------------------------------------- */

/* Sets a clear bit of taken[] and takes the bit's chunk. If the chunk isn't FREE, another thread
 * has it, and the bit should have been set. The bit then stays set. The bits of chunks that this
 * process has just given up stay clear: they are free for other processes. */
static struct pb_chunk *claim(struct pb_owner o, uint32_t at, unsigned bit)
{
	uint64_t *word = &pb_ring_map.taken[at], mask = 1ull << bit;
	struct pb_chunk *c;

	if (!pb_ring_touch(at * 64 + bit) ||
	    __atomic_fetch_or(word, mask, __ATOMIC_ACQUIRE) & mask)
		return NULL;
	c = take_chunk(o, at * 64 + bit, PB_CHUNK_FREE);
	/* if this thread was stopped before it took the chunk, the recorder may have cleared the
	 * bit meanwhile */
	if (c && !(__atomic_load_n(word, __ATOMIC_RELAXED) & mask))
		__atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
	return c;
}

static struct pb_chunk *claim_any(struct pb_owner o, uint32_t at, uint64_t free)
{
	/* A forked child isn't the owner o. Without the check pb_writer_is(o), it would set all
	 * bits and get no chunk. */
	for (; free && pb_writer_is(o); free &= free - 1) {
		struct pb_chunk *c = claim(o, at, (unsigned)__builtin_ctzll(free));

		if (c)
			return c;
	}
	return NULL;
}

/* Takes the first free chunk in taken[], beginning at the word free_word. When the recorder frees a
 * chunk in a lower word, it sets free_word to that word. So the search often finds a chunk that was
 * used lately. The memory of this chunk is present, and is probably in the cache. If the buffer is
 * larger than one search reads, the next search goes on where this one has ended. */
static struct pb_chunk *find_free(struct pb_owner o, uint32_t nr)
{
	struct pb_ring *ring = pb_ring_map.ring;
	uint32_t words = (uint32_t)pb_ring_taken_words(nr);
	uint32_t from = __atomic_load_n(&ring->free_word, __ATOMIC_RELAXED);

	if (from >= words)
		from = 0;
	for (uint32_t k = 0; k < words && k < SEARCH_WORDS; k++) {
		uint32_t at = from + k < words ? from + k : from + k - words;
		uint64_t free = ~__atomic_load_n(&pb_ring_map.taken[at], __ATOMIC_RELAXED);
		struct pb_chunk *c;

		if (at == words - 1 && nr % 64)
			free &= (1ull << nr % 64) - 1;
		c = free ? claim_any(o, at, free) : NULL;
		if (c) {
			if (k)
				__atomic_store_n(&ring->free_word, at, __ATOMIC_RELAXED);
			return c;
		}
	}
	if (words > SEARCH_WORDS)
		__atomic_store_n(&ring->free_word, (from + SEARCH_WORDS) % words, __ATOMIC_RELAXED);
	return NULL;
}

/* For overwrite mode: moves the ring's position on, and returns the index of the chunk there. After
 * the last usable chunk comes chunk 0. The position is an index, not a count that is reduced modulo
 * the number of usable chunks. So when this number changes, the position stays where it is. The
 * cmpxchg fails only if another thread has moved the position.
 *
 * Some processes map fewer chunks than others. The position isn't limited by what this process
 * maps, because that would take all processes back to chunk 0. */
static uint32_t next_index(uint32_t nr)
{
	struct pb_ring *ring = pb_ring_map.ring;
	uint32_t all = pb_ring_usable(ring, ring->nr_chunks), i;
	uint32_t next = __atomic_load_n(&ring->next_chunk, __ATOMIC_RELAXED);

	do
		i = next < all ? next : 0;
	while (!__atomic_compare_exchange_n(&ring->next_chunk, &next, i + 1, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return i % nr;
}

/* For overwrite mode: takes the next FULL chunk, round robin. Usually it is the oldest. */
static struct pb_chunk *take_over(struct pb_owner o, uint32_t nr)
{
	for (uint32_t tries = 0; tries <= nr && pb_writer_is(o); tries++) {
		struct pb_chunk *c = take_chunk(o, next_index(nr), PB_CHUNK_FULL);

		if (!c)
			continue;
		__atomic_fetch_add(&pb_ring_map.ring->chunks_overwritten, 1, __ATOMIC_RELAXED);
		return c;
	}
	return NULL;
}

/* --- waiting for a free chunk ------------------------------------------- */

/*
 * If many threads wait, each of them runs only now and then. So the waiting threads
 * of a process measure time together. Where the clock mustn't be read, each thread
 * counts its own pauses.
 */
static struct {
	uint64_t heartbeat;	/* the last heartbeat that was seen */
	uint64_t time;		/* time of the last check */
	uint64_t silent;	/* ticks since this heartbeat was first seen */
	uint64_t in_vain;	/* ticks since a waiting thread last got a chunk */
} seen;

/* The heartbeat at which a writer gave up a wait. No writer waits again until the heartbeat
 * changes. */
static uint64_t dead_heartbeat = ~0ull;

/* Set when a wait ended without a chunk because threads hold all chunks of this mapping. As long as
 * this is set and threads still hold all chunks, later waits end at once. */
static bool starved;

struct wait {
	uint64_t heartbeat;
	uint64_t silent, in_vain;	/* as in `seen`, but counted in pauses of this thread */
};

/* Adds the time since the last check to the times of the wait. `time` is the present time, or 0 if
 * the clock mustn't be read. */
static void pass(struct wait *w, uint64_t time)
{
	uint64_t before = __atomic_load_n(&seen.time, __ATOMIC_RELAXED);
	uint64_t step = time - before, most = pb_ring_map.ring->wait_ticks / STEPS;

	if (!time) {
		w->silent += PAUSES;
		w->in_vain += PAUSES;
		return;
	}
	if ((int64_t)step <= 0 ||
	    !__atomic_compare_exchange_n(&seen.time, &before, time, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;		/* another thread has made a later check */
	/* Only a part of a long step counts, because no waiting thread ran in that time. The
	 * machine may have been suspended. */
	step = step < most ? step : most;
	__atomic_fetch_add(&seen.silent, step, __ATOMIC_RELAXED);
	__atomic_fetch_add(&seen.in_vain, step, __ATOMIC_RELAXED);
}

/* If the heartbeat has changed, the silence begins anew. */
static void see(struct wait *w, uint64_t heartbeat)
{
	if (heartbeat != w->heartbeat) {
		w->heartbeat = heartbeat;
		w->silent = 0;
	}
	if (heartbeat != __atomic_load_n(&seen.heartbeat, __ATOMIC_RELAXED)) {
		__atomic_store_n(&seen.heartbeat, heartbeat, __ATOMIC_RELAXED);
		__atomic_store_n(&seen.silent, 0, __ATOMIC_RELAXED);
	}
}

static bool too_long(const uint64_t *ticks, uint64_t pauses)
{
	const struct pb_ring *ring = pb_ring_map.ring;
	uint64_t t = __atomic_load_n(ticks, __ATOMIC_RELAXED);

	return t >= ring->wait_ticks || t >= TICKS_MAX || pauses >= ring->wait_pauses ||
	       pauses >= PAUSES_MAX;
}

static void end_in_vain(struct wait *w)
{
	w->in_vain = 0;
	__atomic_store_n(&seen.in_vain, 0, __ATOMIC_RELAXED);
}

static bool all_held(void)
{
	uint32_t nr = __atomic_load_n(&pb_ring_map.nr_chunks, __ATOMIC_RELAXED);

	if (!nr || !pb_ring_touch(nr - 1))
		return false;		/* chunks are being unmapped, or the ring is */
	for (uint32_t i = 0; i < nr; i++) {
		struct pb_chunk *c = (void *)(pb_ring_map.chunks + (uint64_t)i * PB_CHUNK_SIZE);
		uint32_t state = __atomic_load_n(&c->state, __ATOMIC_RELAXED);

		if (state != PB_CHUNK_OPEN && state != PB_CHUNK_HELD && state != PB_CHUNK_TAKEN)
			return false;
	}
	return true;
}

/* Returns false if a further wait makes no sense: the recorder is gone, the session ends, the mode
 * has changed, or threads hold all chunks. */
static bool reader_lives(struct wait *w)
{
	struct pb_ring *ring = pb_ring_map.ring;
	uint64_t time = pb_supply_ticks();
	uint64_t heartbeat = __atomic_load_n(&ring->heartbeat, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&pb_ring_map.mode, __ATOMIC_RELAXED) != PB_RING_WAIT ||
	    __atomic_load_n(&ring->closing, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&ring->owner, __ATOMIC_RELAXED) & PB_OWNER_DIED ||
	    heartbeat == __atomic_load_n(&dead_heartbeat, __ATOMIC_RELAXED))
		return false;
	pass(w, time);
	see(w, heartbeat);
	if (too_long(&seen.silent, w->silent)) {
		if (__atomic_exchange_n(&dead_heartbeat, heartbeat, __ATOMIC_RELAXED) != heartbeat)
			__atomic_fetch_add(&ring->waits_in_vain, 1, __ATOMIC_RELAXED);
		return false;
	}
	if (!too_long(&seen.in_vain, w->in_vain) && !__atomic_load_n(&starved, __ATOMIC_RELAXED))
		return true;
	end_in_vain(w);
	__atomic_store_n(&starved, all_held(), __ATOMIC_RELAXED);
	return !starved;
}

static struct pb_chunk *wait_for_free(struct pb_owner o)
{
	struct wait w = { .heartbeat = ~0ull };

	while (pb_writer_is(o) && reader_lives(&w)) {
		struct pb_chunk *c;

		for (int i = 0; i < PAUSES; i++)
			pb_cpu_pause();
		c = find_free(o, pb_ring_usable(pb_ring_map.ring, pb_ring_map.nr_chunks));
		if (c) {
			end_in_vain(&w);
			return c;
		}
	}
	return NULL;
}

struct pb_chunk *pb_supply_take(struct pb_owner o)
{
	uint32_t nr = pb_ring_usable(pb_ring_map.ring, pb_ring_map.nr_chunks);
	uint32_t mode = __atomic_load_n(&pb_ring_map.mode, __ATOMIC_RELAXED);
	struct pb_chunk *c = find_free(o, nr);

	if (c || mode == PB_RING_DISCARD)
		return c;
	return mode == PB_RING_OVERWRITE ? take_over(o, nr) : wait_for_free(o);
}
