/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A hash's block, and the states of its elements. For map_hash.c, map_hash_layout.c,
 * map_hash_walk.c, map_lru.c and map_elem.c only.
 *
 *   head | struct hash_top | buckets u64[] | elements | per-CPU types: values of slot 0, 1 ...
 *
 * An element's `next` is one word, {tag, KEPT, OUT, MARK, link}. What an element is stands in
 * it and nowhere else, so that a process may die between any two instructions:
 *
 *   0                     never used
 *   MARK OUT link         free; link: the next one in its stack, a hint
 *   MARK OUT END owner    a thread fills it, or puts it away
 *   link                  in its bucket's list; or filled, and about to be put there by
 *                         e->owner
 *   MARK link             deleted; in its list, until a thread unlinks it and owns it then
 *
 *          take_elem        update             mark             sweep         give_elem
 *   free ───────────▶ owned ──────▶ in list ───────▶ deleted ───────▶ owned ─────────▶ free
 *        (new tag)
 *
 * Each arrow but update's is one cmpxchg of the word; update's last step is that of the
 * bucket's word. The tag is another one in each life, and whenever
 * the link changes. Stacks of free elements are hints
 * where to look: a thread that takes an element off a stack owns it only when its word has become
 * `owned`. Its word (and e->owner) shows what a dead process left: map_elem.c.
 */
#ifndef PB_BPF_MAP_MAP_HASH_H
#define PB_BPF_MAP_MAP_HASH_H
#include "bpf/map/map_priv.h"

#define END		0x80000000u
#define MARK		(1ull << 32)
#define OUT		(1ull << 33)
#define KEPT		(1ull << 34)	/* with MARK: its room is its successor's now */
#define TAG_ONE		(1ull << 35)
#define TAGS		(~(TAG_ONE - 1))
#define LINK(word)	((uint32_t)(word))
#define STATE(word)	((word) & (MARK | OUT))
#define FREE		(MARK | OUT)	/* with a link that isn't END */
#define SPARE		64	/* elements for updates that are under way */
#define SHARDS		16	/* each run takes and gives by its per-CPU slot, so that processors
				 * meet seldom */
#define SMALL		8	/* bytes of a value that is changed where it is */
#define MAX_WALKS	1000	/* each was disturbed by a thread that got further */

enum { LOST = 1, SWEEP, DAMAGED };	/* the last: what no process of ours does */

struct hash_top {
	uint32_t fresh;		/* elements that were never used lie from here on */
	uint32_t hand;		/* LRU: the next one that is looked at */
	uint32_t scan;		/* where the search for lost elements goes on */
	uint32_t deaths;	/* what dead processes left that was found */
	uint32_t doubt;		/* keys were counted while somebody was at work */
	uint32_t guard;		/* hash_of_maps: of its writers */
	uint32_t pad[10];
	struct hash_shard {
		uint64_t head;	/* of a stack of free elements: {tag, link}; link 0: none */
		uint32_t room;	/* keys that may come; all of these and the keys are max_entries */
		uint32_t pad[29];	/* processors fetch lines in pairs */
	} shard[SHARDS];
};
_Static_assert(!(sizeof(struct hash_top) % 64), "whole cache lines");

struct elem {
	uint64_t next;
	uint64_t small;		/* a value of up to SMALL bytes: changes together with `next` */
	uint32_t hash;
	uint16_t owner;		/* the thread that filled it */
	uint8_t ref;		/* LRU: was looked up since the hand passed */
	uint8_t room;		/* while it is somebody's: has room for a key, or is about to take
				 * it */
	char key[];		/* rounded up to 8, then a larger value; those of per-CPU slots lie
				 * elsewhere */
} __attribute__((aligned(16)));

static inline struct hash_top *hash_top(const struct pb_bpf_map *m)
{
	return (struct hash_top *)(m->head + 1);
}

static inline struct elem *elem(const struct pb_bpf_map *m, uint32_t link)
{
	return (struct elem *)(m->elems + (uint64_t)(link - 1) * m->elem_size);
}

static inline bool is_elem(const struct pb_bpf_map *m, uint32_t link)
{
	return link - 1u < m->nr_elems;
}

static inline bool is_percpu(uint32_t type)
{
	return type == BPF_MAP_TYPE_PERCPU_HASH || type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

static inline char *value_of(const struct pb_bpf_map *m, uint32_t link)
{
	struct elem *e = elem(m, link);

	return m->attr.value_size <= SMALL ? (char *)&e->small : e->key + m->key_room;
}

/* Whose stack and room an operation uses first. */
static inline uint32_t shard_of(const struct pb_bpf_map *m, const struct pb_bpf_run *run)
{
	return ((run ? run->lane : 0) + m->owner * 5) % SHARDS;
}

static inline char *lane_value(const struct pb_bpf_map *m, uint32_t link, uint32_t lane)
{
	return m->values + lane * m->lane_size + (uint64_t)(link - 1) * m->value_room;
}

static inline bool is_lru(const struct pb_bpf_map *m)
{
	return m->attr.type == BPF_MAP_TYPE_LRU_HASH ||
	       m->attr.type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

/* The word of an element that this process fills. */
static inline uint64_t owned_by(const struct pb_bpf_map *m, uint64_t tag)
{
	return tag | MARK | OUT | END | m->owner;
}

/* map_elem.c */
/* An element of our own, with a new tag; 0: none left. */
uint32_t pb_bpf_hash_take_elem(struct pb_bpf_map *m, uint32_t shard);
/* word: its word that the caller alone may replace. */
void pb_bpf_hash_give_elem(struct pb_bpf_map *m, uint32_t link, uint64_t word, uint32_t shard);
/* The number of keys may rise by one; false: there are as many as can be. */
bool pb_bpf_hash_take_room(struct pb_bpf_map *m, uint32_t shard);
void pb_bpf_hash_give_room(struct pb_bpf_map *m, uint32_t shard);
/* Keys, but for those that are under way. */
uint32_t pb_bpf_hash_keys(const struct pb_bpf_map *m);
/* Finds what dead processes left, and counts the keys again if no thread changes them. */
void pb_bpf_hash_repair(struct pb_bpf_map *m, uint32_t dead);

/* Whether, since this process last asked, another one may have died at its work, and the map
 * was repaired. Asks the kernel, but seldom. */
bool pb_bpf_somebody_died(struct pb_bpf_map *m);

/* map_hash.c */
struct pb_bpf_found {
	uint32_t link;		/* of an element with the key that isn't deleted, or 0 */
	uint8_t lost;		/* the walk says nothing: LOST, its list changed; SWEEP; DAMAGED */
	uint64_t word, tag;	/* the element's, and its life; read before its key */
};
uint32_t pb_bpf_hash_of(const struct pb_bpf_map *m, const void *key);
/* The element with the key. */
struct pb_bpf_found pb_bpf_hash_find(struct pb_bpf_map *m, uint32_t hash, const void *key);
/* Takes deleted elements out of the list; false: it was never looked through to its end. */
bool pb_bpf_hash_sweep(struct pb_bpf_map *m, uint32_t bucket, uint32_t shard);
/* Whether the element is in its bucket's list: 1, 0; -1: can't be said. */
int pb_bpf_hash_in_list(struct pb_bpf_map *m, uint32_t bucket, uint32_t link);
/* Deletes an element that has that tag; false: another thread has. The thread that frees it gives
 * its room back. */
bool pb_bpf_hash_mark(struct pb_bpf_map *m, uint32_t link, uint64_t tag);

/* map_hash_layout.c */
uint64_t pb_bpf_hash_size(const struct pb_bpf_map_spec *s, int *err);
void pb_bpf_hash_format(void *block);
bool pb_bpf_hash_open(struct pb_bpf_map *m);

/* map_hash_walk.c */
int pb_bpf_hash_next_key(struct pb_bpf_map *m, const void *key, void *next);
int64_t pb_bpf_hash_each(struct pb_bpf_map *m, pb_bpf_map_fn *fn, void *arg,
			 struct pb_bpf_run *run);

/* map_lru.c */
/* Deletes one key that wasn't used lately; false: there is none. */
bool pb_bpf_lru_evict(struct pb_bpf_map *m, uint32_t shard);
#endif
