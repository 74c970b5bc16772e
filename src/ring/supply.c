/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ring/supply.h"
#include "ring/writer.h"

#define DISCARD_TRIES	64
#define WAIT_TURNS	(1u << 27)	/* pauses: some seconds */

bool pb_chunk_change_state(struct pb_chunk *c, uint32_t state, uint32_t serial, uint32_t new_state,
			   uint32_t new_serial)
{
	uint64_t old = (uint64_t)serial << 32 | state;

	return __atomic_compare_exchange_n((uint64_t *)c, &old, (uint64_t)new_serial << 32 | new_state,
					   false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static struct pb_chunk *try_chunk(uint32_t index, uint32_t serial)
{
	struct pb_chunk *c = (void *)(pb_ring_map.chunks + (uint64_t)index * PB_CHUNK_SIZE);
	uint64_t word = __atomic_load_n((uint64_t *)c, __ATOMIC_RELAXED);
	uint32_t state = (uint32_t)word;

	if (state != PB_CHUNK_FREE &&
	    !(state == PB_CHUNK_FULL && pb_ring_map.mode == PB_RING_OVERWRITE))
		return NULL;
	return pb_chunk_change_state(c, state, (uint32_t)(word >> 32), PB_CHUNK_TAKEN, serial) ? c : NULL;
}

/* The heartbeat at which a wait was given up: nobody waits again before it moves. */
static uint64_t dead_beat = ~0ull;

/* Whether waiting for the reader makes sense: it lives, and goes on. No clock:
 * reading it may be forbidden. */
static bool reader_lives(uint64_t *seen, uint32_t *turns)
{
	uint64_t beat = __atomic_load_n(&pb_ring_map.ring->heartbeat, __ATOMIC_RELAXED);

	if (__atomic_load_n(&pb_ring_map.mode, __ATOMIC_RELAXED) != PB_RING_WAIT ||
	    __atomic_load_n(&pb_ring_map.ring->closing, __ATOMIC_RELAXED) ||
	    beat == __atomic_load_n(&dead_beat, __ATOMIC_RELAXED))
		return false;
	if (beat != *seen) {
		*seen = beat;
		*turns = 0;
	}
	if (++*turns < WAIT_TURNS / 256)
		return true;
	__atomic_store_n(&dead_beat, beat, __ATOMIC_RELAXED);
	return false;
}

struct pb_chunk *pb_supply_take(uint32_t serial)
{
	uint32_t nr = pb_ring_map.nr_chunks, mode = pb_ring_map.mode;
	uint64_t seen = 0;
	uint32_t turns = 0;

	for (uint32_t tries = 0;; tries++) {
		uint32_t i = __atomic_fetch_add(&pb_ring_map.ring->next_chunk, 1, __ATOMIC_RELAXED);
		struct pb_chunk *c = try_chunk(i % nr, serial);

		if (c)
			return c;
		if (mode == PB_RING_WAIT) {
			__builtin_ia32_pause();
			if (tries % 256 == 255 && !reader_lives(&seen, &turns))
				return NULL;
		} else if (tries >= nr || (mode == PB_RING_DISCARD && tries >= DISCARD_TRIES)) {
			return NULL;
		}
	}
}
