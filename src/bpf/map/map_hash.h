/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A hash's block, and the states of its elements. Only for map_hash.c, map_hash_layout.c,
 * map_hash_walk.c, map_lru.c and map_elem.c.
 *
 *   head | struct hash_top | buckets u64[] | elements | per-CPU types: values of slot 0, 1 ...
 *
 * An element's `next` is one word, {tag, KEPT, OUT, MARK, link}. It alone says in which state the
 * element is, so a process may die between any two instructions:
 *
 *   0                     never used
 *   MARK OUT link         free; link: the next one in its stack, a hint
 *   MARK OUT END owner    owned: a thread of process `owner` fills or frees it
 *   link                  in its bucket's list; or filled, and about to be linked there
 *                         by a thread of process e->owner
 *   MARK link             deleted; still in its list, until a thread unlinks and then owns it
 *
 *          take_elem        update             mark             sweep         give_elem
 *   free ───────────▶ owned ──────▶ in list ───────▶ deleted ───────▶ owned ─────────▶ free
 *        (new tag)
 *
 * Each arrow except `update` is one cmpxchg of the element's word; `update` ends with a cmpxchg
 * of the word that leads to the element. The tag differs in each life of an element, and changes
 * whenever the link does. Stacks of free elements are only hints: a thread that takes an element
 * off a stack owns it only once it has changed the element's word to `owned`. The word, and
 * e->owner, show what a dead process left: map_elem.c.
 */
#ifndef PB_BPF_MAP_MAP_HASH_H
#define PB_BPF_MAP_MAP_HASH_H
#include "bpf/map/map_priv.h"

#define END		0x80000000u
#define MARK		(1ull << 32)
#define OUT		(1ull << 33)
#define KEPT		(1ull << 34)	/* with MARK: the next element, which replaces this one, has
					 * taken over its room */
#define TAG_ONE		(1ull << 35)
#define TAGS		(~(TAG_ONE - 1))
#define LINK(word)	((uint32_t)(word))
#define STATE(word)	((word) & (MARK | OUT))
#define FREE		(MARK | OUT)	/* with a link that isn't END */
#define SPARE		64	/* additional elements, for updates that are under way */
#define SHARDS		16	/* a run uses the shard of its per-CPU slot first, so that
				 * processors seldom contend */
#define SMALL		8	/* values of at most SMALL bytes are changed in place */
#define MAX_WALKS	1000	/* walks before an operation gives up; each was disturbed by a
				 * thread that made progress */

enum { LOST = 1, SWEEP, DAMAGED };	/* DAMAGED: a list is corrupt; Patchbay's code never leaves
					 * it so */

struct hash_top {
	uint32_t fresh;		/* elements from this one on were never used */
	uint32_t hand;		/* LRU: the next element that is considered for eviction */
	uint32_t scan;		/* where the next search for lost elements begins */
	uint32_t deaths;	/* elements that dead processes left and repairs found */
	uint32_t doubt;		/* the last count of keys may be wrong: operations were under
				 * way */
	uint32_t guard;		/* hash_of_maps: the lock of its writers */
	uint32_t pad[10];
	struct hash_shard {
		uint64_t head;	/* a stack of free elements: {tag, link}; link 0: empty */
		uint32_t room;	/* keys that may still be added; all rooms and the number of keys
				 * add up to max_entries */
		uint32_t pad[29];	/* processors fetch lines in pairs */
	} shard[SHARDS];
};
_Static_assert(!(sizeof(struct hash_top) % 64), "whole cache lines");

struct elem {
	uint64_t next;
	uint64_t small;		/* a value of up to SMALL bytes */
	uint32_t hash;
	uint16_t owner;		/* the process whose thread filled it */
	uint8_t ref;		/* LRU: was looked up since the hand passed */
	uint8_t room;		/* while a thread owns the element: it has taken room for a key,
				 * or is about to */
	char key[];		/* rounded up to 8 bytes; then a value of more than SMALL bytes,
				 * except in per-CPU types */
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

/* The shard whose stack and room an operation uses first. */
static inline uint32_t shard_of(const struct pb_bpf_map *m, const struct pb_bpf_run *run)
{
	return ((run ? run->cpu_slot : 0) + m->owner * 5) % SHARDS;
}

static inline char *cpu_slot_value(const struct pb_bpf_map *m, uint32_t link, uint32_t cpu_slot)
{
	return m->values + cpu_slot * m->cpu_slot_size + (uint64_t)(link - 1) * m->value_room;
}

static inline bool is_lru(const struct pb_bpf_map *m)
{
	return m->attr.type == BPF_MAP_TYPE_LRU_HASH ||
	       m->attr.type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

/* The word of an element that a thread of this process owns. */
static inline uint64_t owned_by(const struct pb_bpf_map *m, uint64_t tag)
{
	return tag | MARK | OUT | END | m->owner;
}

/* map_elem.c */
/* Takes a free element, which gets a new tag; 0: none is left. */
uint32_t pb_bpf_hash_take_elem(struct pb_bpf_map *m, uint32_t shard);
/* Frees an element that the caller owns. word: its present word. */
void pb_bpf_hash_give_elem(struct pb_bpf_map *m, uint32_t link, uint64_t word, uint32_t shard);
/* Takes room for one more key; false: the map is full. */
bool pb_bpf_hash_take_room(struct pb_bpf_map *m, uint32_t shard);
void pb_bpf_hash_give_room(struct pb_bpf_map *m, uint32_t shard);
/* The number of keys, not exact while operations are under way. */
uint32_t pb_bpf_hash_keys(const struct pb_bpf_map *m);
/* Finds what dead processes left, and counts the keys anew if no thread is changing them. dead:
 * as in pb_bpf_map_ops.repair. */
void pb_bpf_hash_repair(struct pb_bpf_map *m, uint32_t dead);

/* Asks the kernel, but not often, whether a process that has the map died. If so, or if the
 * number of keys is in doubt, repairs the map and returns true. */
bool pb_bpf_repair_after_deaths(struct pb_bpf_map *m);

/* map_hash.c */
struct pb_bpf_found {
	uint32_t link;		/* the element with the key, if it isn't deleted; else 0 */
	uint8_t lost;		/* why the walk has no result: LOST, the list changed; SWEEP, the
				 * list has a deleted element; DAMAGED. 0: it has a result */
	uint64_t word, tag;	/* the element's word, and the tag in it; read before the key */
};
uint32_t pb_bpf_hash_of(const struct pb_bpf_map *m, const void *key);
/* Finds the element with the key. */
struct pb_bpf_found pb_bpf_hash_find(struct pb_bpf_map *m, uint32_t hash, const void *key);
/* Unlinks the deleted elements of a bucket; false: no walk reached the end of the list. */
bool pb_bpf_hash_sweep(struct pb_bpf_map *m, uint32_t bucket, uint32_t shard);
/* Whether the element is in its bucket's list: 1 or 0; -1: not known. */
int pb_bpf_hash_in_list(struct pb_bpf_map *m, uint32_t bucket, uint32_t link);
/* Marks the element as deleted if it still has that tag; false: another thread has deleted it.
 * The thread that frees it also gives its room back. */
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
/* Deletes a key that wasn't used recently; false: there is none. */
bool pb_bpf_lru_evict(struct pb_bpf_map *m, uint32_t shard);
#endif
