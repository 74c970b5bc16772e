/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A hash's block, and the states of its elements. Only map_hash.c, map_hash_layout.c,
 * map_hash_remove.c, map_hash_walk.c, map_lru.c, map_elem.c, map_of.c and tests include this file.
 *
 *   head | struct hash_top | buckets u64[] | elements | per-CPU types: values of slot 0, 1 ...
 *
 * An element's `next` is one word, {tag, KEPT, OUT, MARK, link}. This word alone holds the
 * element's state, so the state is valid even if a process dies between two instructions. KEPT and
 * the tag are explained below. The words and their states:
 *
 *   0                     never used
 *   MARK OUT link         free; link: the next element of its stack, as a hint
 *   MARK OUT END owner    owned: a thread of process `owner` fills or frees the element
 *   link                  in its bucket's list; or filled, and a thread of process e->owner is
 *                         about to link it into the list
 *   MARK link             deleted; still in its list, until a thread unlinks it and then owns it
 *
 *          take_elem        update             mark             sweep         give_elem
 *   free ───────────▶ owned ──────▶ in list ───────▶ deleted ───────▶ owned ─────────▶ free
 *        (new tag)
 *
 * Each arrow except `update` is one cmpxchg of the element's word. `update` ends with a cmpxchg of
 * the word that leads to the element. The tag shows whether an element was reused. An element gets
 * a new tag when a thread or a repair takes the element, and when a thread unlinks the element's
 * successor in the list. Free elements are on stacks, which are only hints: a thread that takes an
 * element off a stack doesn't own the element until the thread has changed the element's word to
 * `owned`. A repair (map_elem.c) finds the elements of a dead process by the word and by e->owner.
 *
 * Values that are changed in place. Between the search for a key and the change of its value, the
 * element may be deleted and reused for another key. So the changing thread first announces the
 * change: it writes {number of its process, its id, link} to a word, and then checks that the
 * element still has the tag that the search found. A thread that takes a free element looks for
 * announced changes of this element. If there is one, the thread gives the element back and takes
 * another one. The announcement's word is the element's `small`, if `small` has neither a value nor
 * another announcement. Otherwise the word is one of hash_top.changing. Values that are changed by
 * change_small() need no announcement, because its cmpxchg checks the element's word.
 *
 * Circle: these files call each other. map_hash.c has the map type's operations, and the walk
 * along a bucket's list. To make room, map_hash.c calls map_elem.c and map_lru.c. These use the
 * walk of map_hash.c to repair and shorten lists. Operations that visit all elements are in
 * map_hash_walk.c.
 */
#ifndef PB_BPF_MAP_MAP_HASH_H
#define PB_BPF_MAP_MAP_HASH_H
#include "bpf/map/map_priv.h"

#define END		0x80000000u
#define MARK		(1ull << 32)
#define OUT		(1ull << 33)
#define KEPT		(1ull << 34)	/* with MARK: the next element replaces this element, and
					 * has taken over this element's room (its share of
					 * max_entries) */
#define TAG_ONE		(1ull << 35)
#define TAGS		(~(TAG_ONE - 1))
#define LINK(word)	((uint32_t)(word))
#define STATE(word)	((word) & (MARK | OUT))
#define FREE		(MARK | OUT)	/* the state of free and of owned elements; the link of an
					 * owned element has END */
#define SPARE		64	/* number of additional elements, for updates that are under way */
#define SHARDS		16	/* number of parts (shards) into which free elements and room are
				 * divided. A run uses the shard of its per-CPU slot first, so that
				 * processors seldom contend */
#define SMALL		8	/* values of at most SMALL bytes are in `small`, except per-CPU
				 * values */
#define CHANGING	32	/* number of words for announced changes, besides the words of the
				 * elements */
#define MAX_WALKS	1000	/* an operation gives up after this many walks. Each of these walks
				 * was disturbed by another operation that made progress */

enum { LOST = 1, SWEEP, DAMAGED };	/* DAMAGED: a list is corrupt; Patchbay's code never
					 * corrupts a list */

struct hash_top {
	uint32_t fresh;		/* this element and all later elements were never used */
	uint32_t hand;		/* LRU: the next element that is considered for eviction */
	uint32_t scan;		/* the element at which the next search for free elements begins */
	uint32_t deaths;	/* number of elements that repairs have freed after deaths of
				 * processes */
	uint32_t doubt;		/* the last count of keys may be wrong, because operations were
				 * under way */
	uint32_t guard;		/* hash_of_maps: the lock of its writers */
	uint32_t pad[10];
	uint64_t changing[CHANGING];	/* announced changes; 0: the word is free */
	struct hash_shard {
		uint64_t head;	/* head of a stack of free elements: {tag, link}; link 0: the stack
				 * is empty */
		uint32_t room;	/* number of keys that may still be added; the rooms of all shards
				 * and the number of keys add up to max_entries */
		uint32_t pad[29];	/* padding to two cache lines, because processors fetch
					 * lines in pairs */
	} shard[SHARDS];
};
_Static_assert(!(sizeof(struct hash_top) % 64), "whole cache lines");

struct elem {
	uint64_t next;
	uint64_t small;		/* a value of up to SMALL bytes; in maps without such values: an
				 * announced change, or 0 */
	uint32_t hash;
	uint16_t owner;		/* number of the process whose thread filled the element */
	uint8_t ref;		/* LRU: set if the element was updated, or a program has looked it
				 * up, since the hand passed it */
	uint8_t room;		/* while a thread owns the element: the thread has taken room for a
				 * key, or is about to take room */
	char key[];		/* the key, rounded up to 8 bytes. A value of more than SMALL bytes
				 * follows, but not in per-CPU types */
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

/* Returns the shard whose stack and room an operation uses first. */
static inline uint32_t shard_of(const struct pb_bpf_map *m, const struct pb_bpf_run *run)
{
	return ((run ? run->cpu_slot : 0) + m->owner * 5) % SHARDS;
}

static inline char *cpu_slot_value(const struct pb_bpf_map *m, uint32_t link, uint32_t cpu_slot)
{
	return m->values + cpu_slot * m->cpu_slot_size + (uint64_t)(link - 1) * m->value_room;
}

/* Whether changes of values in place are announced. */
static inline bool announces_changes(const struct pb_bpf_map *m)
{
	return is_percpu(m->attr.type) || m->types.spin_lock_off >= 0;
}

static inline bool is_lru(const struct pb_bpf_map *m)
{
	return m->attr.type == BPF_MAP_TYPE_LRU_HASH ||
	       m->attr.type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

/* Returns the word for an element that a thread of this process owns. */
static inline uint64_t owned_by(const struct pb_bpf_map *m, uint64_t tag)
{
	return tag | MARK | OUT | END | m->owner;
}

/* map_elem.c */
/* Takes a free element, and gives it a new tag. Returns the element's link. 0: the call found no
 * free element without an announced change. */
uint32_t pb_bpf_hash_take_elem(struct pb_bpf_map *m, uint32_t shard);
/* Frees an element that the caller owns. word: the element's current word. */
void pb_bpf_hash_give_elem(struct pb_bpf_map *m, uint32_t link, uint64_t word, uint32_t shard);
/* Announces that the caller is about to change the element's value in place. After this call, the
 * caller must check that the element still has its tag. If the element still has its tag, it isn't
 * reused before pb_bpf_hash_end_change(). Returns the word that pb_bpf_hash_end_change() needs.
 * NULL: all words are in use, and the change isn't announced. */
uint64_t *pb_bpf_hash_begin_change(struct pb_bpf_map *m, uint32_t link, struct pb_bpf_run *run);
/* Ends the announcement, with a full barrier. If word is NULL, does nothing. */
void pb_bpf_hash_end_change(struct pb_bpf_map *m, uint32_t link, uint64_t *word,
			    struct pb_bpf_run *run);
/* pb_bpf_map_ops.abandon: ends the announcement of a run that never goes on. */
bool pb_bpf_hash_abandon(struct pb_bpf_map *m, void *what, uint64_t word);
/* Takes room for one more key. False: the map is full. */
bool pb_bpf_hash_take_room(struct pb_bpf_map *m, uint32_t shard);
void pb_bpf_hash_give_room(struct pb_bpf_map *m, uint32_t shard);
/* Returns the number of keys. The number isn't exact while operations are under way. */
uint32_t pb_bpf_hash_keys(const struct pb_bpf_map *m);
/* Frees the elements that dead processes have left behind. Counts the keys anew if no thread is
 * changing them. dead: as in pb_bpf_map_ops.repair. */
void pb_bpf_hash_repair(struct pb_bpf_map *m, uint32_t dead);

/* Asks the kernel whether a process that has the map has died. If a process has died, or if the
 * number of keys is in doubt, repairs the map and returns true. Otherwise returns false. Only
 * returns false if m->alive is NULL, or if the map was last checked less than 10 ms ago. */
bool pb_bpf_repair_after_deaths(struct pb_bpf_map *m);

/* map_hash.c */
struct pb_bpf_found {
	uint32_t link;		/* the element with the key; 0: there is none, or it is deleted */
	uint8_t lost;		/* 0 if the walk has a result, else the reason: LOST (the list
				 * changed), SWEEP (the list has a deleted element) or DAMAGED */
	uint64_t word, tag;	/* the element's word, and the tag in the word; the word was read
				 * before the key */
};
uint32_t pb_bpf_hash_of(const struct pb_bpf_map *m, const void *key);
/* Finds the element with the key. */
struct pb_bpf_found pb_bpf_hash_find(struct pb_bpf_map *m, uint32_t hash, const void *key);
/* Unlinks the deleted elements of a bucket. False: no walk reached the end of the list. */
bool pb_bpf_hash_sweep(struct pb_bpf_map *m, uint32_t bucket, uint32_t shard);
/* Returns 1 if the element is in its bucket's list, else 0. -1: not known. */
int pb_bpf_hash_in_list(struct pb_bpf_map *m, uint32_t bucket, uint32_t link);
/* Marks the element as deleted if it still has this tag. False: another thread has deleted the
 * element, or the tag has changed. This function doesn't give back the element's room: the thread
 * that frees the element does. */
bool pb_bpf_hash_mark(struct pb_bpf_map *m, uint32_t link, uint64_t tag);

/* Returns whether the element is in its list and has the tag. An element gets another tag when it
 * is reused, or when its successor is unlinked. */
static inline bool pb_bpf_hash_is_same(const struct pb_bpf_map *m, uint32_t link, uint64_t tag)
{
	uint64_t next = pb_load(&elem(m, link)->next);

	return !STATE(next) && (next & TAGS) == tag;
}

/* map_hash_remove.c */
int pb_bpf_hash_remove(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run);
int pb_bpf_hash_take(struct pb_bpf_map *m, const void *key, void *out, uint64_t flags);

/* map_hash_layout.c */
uint64_t pb_bpf_hash_size(const struct pb_bpf_map_spec *s, int *err);
void pb_bpf_hash_format(void *block);
uint64_t pb_bpf_hash_written(const struct pb_bpf_map_spec *s);
bool pb_bpf_hash_open(struct pb_bpf_map *m);

/* map_hash_walk.c */
int pb_bpf_hash_next_key(struct pb_bpf_map *m, const void *key, void *next);
int64_t pb_bpf_hash_each(struct pb_bpf_map *m, pb_bpf_map_fn *fn, void *arg,
			 struct pb_bpf_run *run);

/* map_lru.c */
/* Deletes a key that wasn't used recently. False: there is no such key. */
bool pb_bpf_lru_evict(struct pb_bpf_map *m, uint32_t shard);
#endif
