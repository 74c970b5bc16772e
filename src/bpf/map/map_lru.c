/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Evicts a key from a full LRU map, by the clock algorithm. An element's `ref` is set when a
 * program looks up the element, and when the element is updated. A hand moves over all elements. It
 * clears each `ref` that is set, and evicts the first element whose `ref` isn't set. If keys are
 * never looked up or updated, the oldest key is evicted first, because the hand meets the elements
 * in the order of their age. While the map fills up, elements are taken in the hand's order. Later,
 * the evicted element is usually the next element to be filled.
 */
#include "bpf/map/map_hash.h"

bool pb_bpf_lru_evict(struct pb_bpf_map *m, uint32_t shard)
{
	uint32_t *hand = &hash_top(m)->hand;

	for (uint64_t i = 0; i < 2ull * m->nr_elems; i++) {
		uint32_t at = __atomic_fetch_add(hand, 1, __ATOMIC_RELAXED),
			link = at % m->nr_elems + 1;
		struct elem *e = elem(m, link);
		uint64_t word = pb_load(&e->next);
		uint32_t bucket;

		if (at >= 1u << 31)	/* subtract a multiple of nr_elems before the counter
					 * overflows */
			__atomic_fetch_sub(hand, (1u << 31) / m->nr_elems * m->nr_elems,
					   __ATOMIC_RELAXED);
		if (!word || STATE(word))
			continue;
		if (e->ref) {
			e->ref = 0;
			continue;
		}
		/* a new element that is in no list yet belongs to the thread that fills it */
		bucket = e->hash & m->mask;
		if (pb_bpf_hash_in_list(m, bucket, link) != 1 ||
		    !pb_bpf_hash_mark(m, link, word & TAGS))
			continue;
		pb_bpf_hash_sweep(m, bucket, shard);
		return true;
	}
	return false;
}
