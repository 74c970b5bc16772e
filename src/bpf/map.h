/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps. A map's memory is one block that may be shared: header, then tables, all
 * references in it are indices, so it is mapped anywhere, by several processes, and
 * is usable whatever instruction one of them died at. doc/design/bpf.md says how.
 *
 * Operations return 0 or -errno, the kernel's. Context: any thread, signal
 * handlers, nested in themselves; no lock, no allocation, no system call.
 */
#ifndef PB_BPF_MAP_H
#define PB_BPF_MAP_H
#include <linux/bpf.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

struct pb_bpf_map_attr {
	uint32_t type, key_size, value_size, max_entries, flags;
};

#define PB_BPF_MAP_MAGIC 0x3150414d46504250ull	/* "PBPFMAP1" */

/* At the start of the block; written once, before anybody else maps it. */
struct pb_bpf_map_head {
	uint64_t magic, size;
	struct pb_bpf_map_attr attr;
	uint32_t version;
	uint64_t pad[3];
};
_Static_assert(sizeof(struct pb_bpf_map_head) == 64, "a cache line");

struct pb_bpf_map;
struct pb_bpf_prog;
struct pb_bpf_map_ops {
	/* Bytes of a block for attr; 0 with *err set: can't be. */
	uint64_t (*size)(const struct pb_bpf_map_attr *attr, int *err);
	/* A block of zeros behind its header becomes an empty map. */
	void (*format)(void *block, const struct pb_bpf_map_attr *attr);
	/* Whether a block that somebody else formatted can be used; fills map. */
	bool (*open)(struct pb_bpf_map *map);
	void *(*lookup)(struct pb_bpf_map *map, const void *key);
	int (*update)(struct pb_bpf_map *map, const void *key, const void *value, uint64_t flags);
	int (*remove)(struct pb_bpf_map *map, const void *key);
	int (*next_key)(struct pb_bpf_map *map, const void *key, void *next);
	/* Where byte `off` of all values lies, for BPF_PSEUDO_MAP_VALUE; NULL: not there */
	void *(*direct)(struct pb_bpf_map *map, uint32_t off);
	/* Of prog_array: the program at index for a tail call; NULL: none, or beyond the end */
	const struct pb_bpf_prog *(*prog)(struct pb_bpf_map *map, uint32_t index);
};

/* A pointer in values that only bpf_kptr_xchg and loads reach. */
struct pb_bpf_kptr {
	uint32_t off, btf_id;		/* in the value; of the structure */
	bool referenced;
};
#define PB_BPF_MAX_KPTRS 8

/* What BTF tells of the values. */
struct pb_bpf_map_types {
	int32_t spin_lock_off, timer_off;	/* -1: none */
	uint32_t nr_kptrs;
	struct pb_bpf_kptr kptrs[PB_BPF_MAX_KPTRS];
	uint32_t btf_key, btf_value;	/* type ids, or 0 */
};

/* A process' view of a map; what programs hold as a map. */
struct pb_bpf_map {
	const struct pb_bpf_map_ops *ops;
	struct pb_bpf_map_head *head;
	struct pb_bpf_map_attr attr;	/* copied when it was opened, and checked */
	struct pb_bpf_map_attr inner;	/* of maps of maps: what their maps are like */
	struct pb_bpf_map_types types;
	uint32_t id;
	char name[BPF_OBJ_NAME_LEN];
	bool frozen;			/* nobody may write it from outside any more */
	/* of the type */
	char *elems;
	uint64_t *buckets;
	uint32_t elem_size, nr_elems, mask, key_room;
};

extern const struct pb_bpf_map_ops pb_bpf_hash_ops;
#endif
