/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Access to maps from outside of programs: the operations of bpf(2), with its rights, flags and
 * errors. In calls from outside, a value of a per-CPU map is an array: it has one value for each
 * per-CPU slot, each rounded up to a multiple of 8 bytes. In a map of objects (map_of.c), callers
 * write handles and read ids.
 *
 * Context: any thread, but not inside a run. The functions may make system calls. They return 0 or
 * -errno. They return -PB_BPF_ENOTSUPP (-524) and -EPERM in the same cases as the kernel.
 */
#ifndef PB_BPF_MAP_MAP_SYS_H
#define PB_BPF_MAP_MAP_SYS_H
#include "bpf/map/map.h"

/* Returns the number of bytes of a value in calls from outside. */
uint64_t pb_bpf_map_value_size(const struct pb_bpf_map *map);

/* Returns whether the map is a hash of any type. */
bool pb_bpf_map_is_hash(const struct pb_bpf_map *map);

int pb_bpf_map_lookup_elem(struct pb_bpf_map *map, const void *key, void *value, uint64_t flags);
int pb_bpf_map_update_elem(struct pb_bpf_map *map, const void *key, const void *value,
			   uint64_t flags);
int pb_bpf_map_delete_elem(struct pb_bpf_map *map, const void *key);
/* Stores the key after `key` in *next. If key is NULL or isn't in the map, stores the first key.
 * -ENOENT: `key` is the last key */
int pb_bpf_map_get_next_key(struct pb_bpf_map *map, const void *key, void *next);
int pb_bpf_map_lookup_and_delete_elem(struct pb_bpf_map *map, const void *key, void *value,
				      uint64_t flags);
/* Some processes have no `alive`, and can't find out which processes live. If such a process waits
 * for a lock or a bucket of this map, and the holder is dead, this function releases the lock or
 * the bucket. As long as such processes use the map, a process that has `alive` must call this
 * function every few milliseconds. If no process waits, the call costs one load. */
void pb_bpf_map_release_dead(struct pb_bpf_map *map);
/* Makes the map read-only from outside. */
int pb_bpf_map_freeze(struct pb_bpf_map *map);

/*
 * keys, values: two arrays with room for *count elements each. On return, *count is the number of
 * the map's elements that were processed. in: the position at which to begin; NULL: at the first
 * element. out: receives the position at which to continue. For a hash a position has 4 bytes. For
 * other types a position is a key. -ENOENT: the map has no more elements. -ENOSPC: the arrays have
 * too little room for all elements of a hash's bucket; a batch with more room may continue at
 * `out`.
 */
struct pb_bpf_map_batch {
	const void *in;
	void *out, *keys, *values;
	uint32_t *count;
	uint64_t elem_flags, flags;
};
int pb_bpf_map_lookup_batch(struct pb_bpf_map *map, const struct pb_bpf_map_batch *b);
int pb_bpf_map_lookup_and_delete_batch(struct pb_bpf_map *map, const struct pb_bpf_map_batch *b);
int pb_bpf_map_update_batch(struct pb_bpf_map *map, const struct pb_bpf_map_batch *b);
int pb_bpf_map_delete_batch(struct pb_bpf_map *map, const struct pb_bpf_map_batch *b);
#endif
