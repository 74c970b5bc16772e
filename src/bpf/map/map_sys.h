/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps from outside: what bpf(2) does, with its rights, flags and errors. Values of
 * per-CPU types are those of all slots, each rounded up to 8 bytes; values of maps of
 * objects are handles when they are written and ids when they are read.
 *
 * Context: any thread, not inside a run: may make system calls. Return 0 or -errno;
 * -524 (PB_BPF_ENOTSUPP) and -EPERM are the kernel's in the same places.
 */
#ifndef PB_BPF_MAP_MAP_SYS_H
#define PB_BPF_MAP_MAP_SYS_H
#include "bpf/map/map.h"

/* Bytes of a value, from outside. */
uint64_t pb_bpf_map_value_size(const struct pb_bpf_map *map);

int pb_bpf_map_lookup_elem(struct pb_bpf_map *map, const void *key, void *value, uint64_t flags);
int pb_bpf_map_update_elem(struct pb_bpf_map *map, const void *key, const void *value,
			   uint64_t flags);
int pb_bpf_map_delete_elem(struct pb_bpf_map *map, const void *key);
/* key NULL, or not there: the first one. -ENOENT: it was the last */
int pb_bpf_map_get_next_key(struct pb_bpf_map *map, const void *key, void *next);
int pb_bpf_map_lookup_and_delete_elem(struct pb_bpf_map *map, const void *key, void *value,
				      uint64_t flags);
/* Makes it read-only from outside. */
int pb_bpf_map_freeze(struct pb_bpf_map *map);

/*
 * *count: room, then what was done. in, out: where to go on, of 4 bytes for hashes and a
 * key otherwise; in NULL: from the beginning. -ENOENT: that was all. -ENOSPC: a hash's
 * bucket doesn't fit into the room.
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
