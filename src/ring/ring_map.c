/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* This process's mapping of the ring, and other variables that the files of this folder share. */
#include <asm/errno.h>
#include "base/base.h"
#include "base/mem.h"
#include "ring/ring_map.h"

struct pb_ring_map pb_ring_map;
uint8_t pb_ring_unseen = PB_UNSEEN_PROGRAM;
size_t (*pb_ring_open_calls)(struct pb_writer *w, struct pb_owner o, uint64_t *out, size_t max,
			     uint32_t *depth, const void *ending);
uint64_t (*pb_ring_clock)(void);
uint64_t pb_no_chunk;
uint64_t pb_no_leaf[2];

/* While a thread has no chunk, its position points into this space. Nothing is written to the
 * space. It has room before and after the position, because each failed reservation moves the
 * position (doc/design/writer.md). */
static uint8_t no_chunk_space[3 * PB_CHUNK_SIZE];

int pb_ring_attach(void *base, uint64_t mapped, uint32_t nr_threads, uint32_t nr_chunks,
		   uint64_t threads_offset, uint64_t chunks_offset, uint32_t mode)
{
	struct pb_ring *ring = base;

	if (ring->magic != PB_RING_MAGIC || ring->version != PB_RING_VERSION)
		return -EINVAL;
	if (threads_offset > mapped || chunks_offset > mapped || chunks_offset % PB_CHUNK_SIZE ||
	    (uintptr_t)base % PB_CHUNK_SIZE ||
	    nr_threads > (mapped - threads_offset) / sizeof(struct pb_ring_thread) ||
	    nr_chunks > (mapped - chunks_offset) / PB_CHUNK_SIZE || nr_chunks < 1 ||
	    pb_ring_taken_offset(threads_offset, nr_threads) + pb_ring_taken_words(nr_chunks) *
	    8 > chunks_offset)
		return -EINVAL;
	pb_no_chunk = pb_align_up((uint64_t)no_chunk_space, (uint64_t)PB_CHUNK_SIZE);
	pb_ring_map = (struct pb_ring_map){
		.ring = ring, .size = mapped, .mode = mode,
		.nr_threads = nr_threads, .nr_chunks = nr_chunks,
		.threads = (void *)((uint8_t *)base + threads_offset),
		.taken = (void *)((uint8_t *)base +
				  pb_ring_taken_offset(threads_offset, nr_threads)),
		.chunks = (uint8_t *)base + chunks_offset,
	};
	return 0;
}

/* This function stores used_below, and then reads nr_chunks. pb_ring_cut() stores nr_chunks, and
 * then reads used_below. So at least one of the two functions sees the other's store, and no chunk
 * in use is cut off. */
bool pb_ring_touch(uint32_t index)
{
	uint32_t *below = &pb_ring_map.used_below, old = __atomic_load_n(below, __ATOMIC_RELAXED);

	while (pb_unlikely(old <= index) &&
	       !__atomic_compare_exchange_n(below, &old, index + 1, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
	return index < __atomic_load_n(&pb_ring_map.nr_chunks, __ATOMIC_SEQ_CST);
}

static uint32_t largest(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

uint64_t pb_ring_cut(uint32_t nr_chunks)
{
	struct pb_ring_map *map = &pb_ring_map;
	uint32_t nr = map->nr_chunks;

	nr_chunks = largest(nr_chunks, __atomic_load_n(&map->used_below, __ATOMIC_SEQ_CST));
	if (nr_chunks < nr) {
		__atomic_store_n(&map->nr_chunks, nr_chunks, __ATOMIC_SEQ_CST);
		/* a chunk that was touched before this store stays */
		nr_chunks = largest(nr_chunks,
				    __atomic_load_n(&map->used_below, __ATOMIC_SEQ_CST));
		nr = nr_chunks < nr ? nr_chunks : nr;
		map->size = (uint64_t)(map->chunks - (uint8_t *)map->ring) +
			    (uint64_t)nr * PB_CHUNK_SIZE;
		__atomic_store_n(&map->nr_chunks, nr, __ATOMIC_SEQ_CST);
	}
	return (uint64_t)map->chunks + (uint64_t)nr * PB_CHUNK_SIZE;
}
