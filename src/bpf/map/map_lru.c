/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which key of a full LRU map goes: a hand moves over all elements; one that was looked
 * up since it last passed is passed once more, the first other one goes. As that is the
 * one that is filled next, and elements are first taken in order, those that were never
 * looked up go first in, first out.
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

		if (at >= 1u << 31)	/* before it wraps, when it would jump */
			__atomic_fetch_sub(hand, (1u << 31) / m->nr_elems * m->nr_elems,
					   __ATOMIC_RELAXED);
		if (!word || STATE(word))
			continue;
		if (e->ref) {
			e->ref = 0;
			continue;
		}
		/* one that is about to be put into its list is somebody's own still */
		bucket = e->hash & m->mask;
		if (pb_bpf_hash_in_list(m, bucket, link) != 1 ||
		    !pb_bpf_hash_mark(m, link, word & TAGS))
			continue;
		pb_bpf_hash_sweep(m, bucket, shard);
		return true;
	}
	return false;
}
