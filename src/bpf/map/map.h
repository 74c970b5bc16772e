/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps. A map's memory is one block that may be shared: header, then tables, all
 * references in it are indices, so it is mapped anywhere, by several processes, and
 * is usable whatever instruction one of them died at. doc/design/bpf.md says how.
 *
 * Operations return 0 or -errno, the kernel's. Those in struct pb_bpf_map_ops are
 * for programs. Context: any thread, signal handlers, nested in themselves; no
 * allocation, no system call, no waiting without bound. map_sys.h has the
 * operations from outside, map_file.h makes and finds blocks.
 */
#ifndef PB_BPF_MAP_MAP_H
#define PB_BPF_MAP_MAP_H
#include <linux/bpf.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

struct pb_bpf_map_attr {
	uint32_t type, key_size, value_size, max_entries, flags;
};

/* A pointer in values that only bpf_kptr_xchg and loads reach. */
struct pb_bpf_kptr {
	uint32_t off, btf_id, size;	/* in the value; of the structure */
	const char *name;		/* the structure's; known to the process that made the map,
					 * "" in others */
	bool referenced;
};
#define PB_BPF_MAX_KPTRS 8

/* What BTF says of the values. */
struct pb_bpf_map_types {
	int32_t spin_lock_off, timer_off;	/* -1: none */
	uint32_t nr_kptrs;
	struct pb_bpf_kptr kptrs[PB_BPF_MAX_KPTRS];
	uint32_t btf_key, btf_value;	/* type ids, or 0 */
};

/* What a new map is to be like. */
struct pb_bpf_map_spec {
	struct pb_bpf_map_attr attr;
	struct pb_bpf_map_attr inner;	/* of maps of maps: what their maps are like; type 0:
					 * none */
	struct pb_bpf_map_types types;	/* spin_lock_off and timer_off have to be said */
	char name[BPF_OBJ_NAME_LEN];
	uint32_t lanes;			/* of per-CPU values: possible processors */
};
#define PB_BPF_MAX_LANES	1024

#define PB_BPF_MAP_MAGIC	0x3150414d46504250ull	/* "PBPFMAP1" */
#define PB_BPF_MAP_VERSION	1
#define PB_BPF_MAX_OWNERS	1024	/* processes that write one map at the same time, and one */

/* At the start of the block; written once, before anybody else maps it, but for the last three. */
struct pb_bpf_map_head {
	uint64_t magic, size;
	struct pb_bpf_map_spec spec;
	uint32_t version, id;
	uint32_t frozen;		/* no longer writable from outside */
	uint32_t next_owner;		/* numbers are used again as late as can be */
	uint32_t owners[PB_BPF_MAX_OWNERS / 32];	/* processes that have it, a bit each */
	uint32_t pad[(512 - 16 - sizeof(struct pb_bpf_map_spec) - 16 - PB_BPF_MAX_OWNERS / 8) / 4];
};
_Static_assert(sizeof(struct pb_bpf_map_head) == 512, "whole cache lines");

struct pb_bpf_map;
struct pb_bpf_prog;
struct pb_bpf_run;

/* What an element looks like to a callback of pb_bpf_map_ops.each: 0 goes on, 1 ends it. */
typedef int64_t pb_bpf_map_fn(void *arg, struct pb_bpf_map *map, const void *key, void *value);

/*
 * Of a type. run: names the per-CPU slot (run->lane), and which thread
 * (run->thread) takes locks; may be NULL, from outside: slot 0, and the thread asks. Runs
 * of processes that share a map lose each other's increments if they have the same slot.
 * What a type can't do returns what its kernel's counterpart does. Only the last three may
 * be NULL.
 */
struct pb_bpf_map_ops {
	/* Bytes of a block for it; 0 with *err set: can't be. */
	uint64_t (*size)(const struct pb_bpf_map_spec *spec, int *err);
	/* A block of zeros after its header becomes an empty map. */
	void (*format)(void *block);
	/* Whether a block that somebody else formatted can be used; fills map. map->attr,
	 * inner, types and lanes are copied and checked already, and fit the block's size. */
	bool (*open)(struct pb_bpf_map *map);
	/* The value; of maps of maps and programs the object itself. NULL: none */
	void *(*lookup)(struct pb_bpf_map *map, const void *key, struct pb_bpf_run *run);
	int (*update)(struct pb_bpf_map *map, const void *key, const void *value, uint64_t flags,
		      struct pb_bpf_run *run);
	int (*remove)(struct pb_bpf_map *map, const void *key, struct pb_bpf_run *run);
	int (*next_key)(struct pb_bpf_map *map, const void *key, void *next);
	/* Queues and stacks. */
	int (*push)(struct pb_bpf_map *map, const void *value, uint64_t flags,
		    struct pb_bpf_run *run);
	int (*pop)(struct pb_bpf_map *map, void *value, struct pb_bpf_run *run);
	int (*peek)(struct pb_bpf_map *map, void *value, struct pb_bpf_run *run);
	/* Calls fn for the elements, as bpf_for_each_map_elem does; returns their number, or
	 * -errno */
	int64_t (*each)(struct pb_bpf_map *map, pb_bpf_map_fn *fn, void *arg,
			struct pb_bpf_run *run);
	/* From outside (map_sys.h): values of all per-CPU slots, numbers for objects; flags are
	 * checked. */
	int (*read)(struct pb_bpf_map *map, const void *key, void *value, uint64_t flags);
	int (*write)(struct pb_bpf_map *map, const void *key, const void *value, uint64_t flags);
	/* The same as read, and it is gone. */
	int (*take)(struct pb_bpf_map *map, const void *key, void *value, uint64_t flags);
	/* Finds what processes left that died at work; asks the kernel which live. dead: one
	 * that died for certain, although another one has its number now; 0: none. NULL: such a
	 * map needs none */
	void (*repair)(struct pb_bpf_map *map, uint32_t dead);
	/* Where byte `off` of all values lies, for BPF_PSEUDO_MAP_VALUE; NULL: not there */
	void *(*direct)(struct pb_bpf_map *map, uint32_t off);
	/* Of prog_array: the program at index for a tail call; NULL: none, or beyond the end */
	const struct pb_bpf_prog *(*prog)(struct pb_bpf_map *map, uint32_t index);
};

enum pb_bpf_object_kind {
	PB_BPF_OBJECT_PROG, PB_BPF_OBJECT_MAP, PB_BPF_OBJECT_EVENT, PB_BPF_OBJECT_CGROUP,
};

/*
 * What the numbers in maps of objects stand for in this process. A map has ids; each
 * process has the objects that it knows. get may be a system call, find not.
 */
struct pb_bpf_objects {
	/* Context: any. NULL: this process doesn't have it */
	void *(*find)(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id);
	/* The id (> 0) of what the caller's handle means, kept until put; -EBADF: nothing,
	 * -EINVAL: something else. */
	int64_t (*get)(const struct pb_bpf_objects *o, uint32_t kind, uint32_t handle);
	void (*put)(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id);
	void *arg;
};

enum pb_bpf_map_access { PB_BPF_MAP_READ = 1, PB_BPF_MAP_WRITE = 2 };

/* A process' view of a map; what programs hold as a map. */
struct pb_bpf_map {
	const struct pb_bpf_map_ops *ops;
	struct pb_bpf_map_head *head;
	struct pb_bpf_map_attr attr;	/* copied when it was opened, and checked */
	struct pb_bpf_map_attr inner;	/* of maps of maps: what their maps are like */
	struct pb_bpf_map_types types;
	uint32_t id;
	char name[BPF_OBJ_NAME_LEN];
	bool frozen;			/* no longer writable from outside */
	uint8_t access;			/* enum pb_bpf_map_access, of this view from outside */
	bool special;			/* values have fields that copying leaves out */
	/*
	 * This process's number among those that share the map (1 ... 1023), and whether a process
	 * still lives: a system call, when elements run out, a full map refuses a key (at most some
	 * hundred times a second), or a lock isn't given back. NULL: not known, or runs may
	 * make no system calls; what a dead process left is found by others, then, or by `repair`.
	 */
	uint32_t owner;
	bool (*alive)(const struct pb_bpf_map *map, uint32_t owner);
	/* True: it is dead, and no process gets its number until unclaim. With `alive`. */
	bool (*claim)(const struct pb_bpf_map *map, uint32_t owner);
	void (*unclaim)(const struct pb_bpf_map *map, uint32_t owner);
	uint64_t asked;			/* when that was last asked */
	const struct pb_bpf_objects *objects;
	/* Wakes consumers of a ring buffer; NULL: they poll */
	void (*wake)(struct pb_bpf_map *map);
	int fd;				/* of the block's file, or -1 */
	uint64_t dev, ino;		/* which file that was */
	uint64_t mapped;		/* bytes of addresses */
	/* of the type */
	uint32_t lanes;			/* 1 but for per-CPU types */
	uint32_t value_room;		/* bytes of a value, rounded up to 8 */
	uint64_t lane_size;		/* bytes from a per-CPU slot's values to the next one's */
	char *elems;			/* arrays: element i is at elems + i * elem_size; of slot l
					 * at elems + l * lane_size + i * elem_size */
	char *values;			/* per-CPU hashes: those of slot 0 */
	uint64_t *buckets;
	uint64_t size;			/* bytes of the block that are looked at */
	uint64_t elem_size;
	uint32_t nr_elems, mask, key_room;
};

/* ENOTSUPP, which the kernel lets out */
#define PB_BPF_ENOTSUPP 524

/* NULL: no such type here. Context: any. */
const struct pb_bpf_map_ops *pb_bpf_map_ops_of(uint32_t type);

/* Bytes of the block; 0: can't be, *err says why. Context: any. */
uint64_t pb_bpf_map_size(const struct pb_bpf_map_spec *spec, int *err);
/* Bytes of addresses that the block takes: its end may be mapped twice (a ring buffer's
 * data), right after it. size: of the block. */
uint64_t pb_bpf_map_span(const struct pb_bpf_map_spec *spec, uint64_t size);

/* Makes a map of a block of pb_bpf_map_size bytes of zeros. */
int pb_bpf_map_format(void *block, const struct pb_bpf_map_spec *spec, uint32_t id);

/*
 * A view of a block of `size` bytes whose addresses are mapped as pb_bpf_map_span says.
 * The block may have been made by anybody, and may change at any time: nothing in it
 * is followed unchecked. -EINVAL: it is no map. owner, alive, objects, wake, fd are left
 * for the caller to set. Context: any; no other thread uses `map` meanwhile.
 */
int pb_bpf_map_open(struct pb_bpf_map *map, void *block, uint64_t size);
/* Bytes of this block, and its span, or 0: it is no map. block: the first 512 bytes; size: at
 * most */
uint64_t pb_bpf_map_block_size(const void *block, uint64_t size, uint64_t *span);

/* Whether a map may be put into `outer`, a map of maps. */
bool pb_bpf_map_fits(const struct pb_bpf_map *outer, const struct pb_bpf_map *inner);

/* The thread that a lock belongs to; from outside a system call finds it. */
uint32_t pb_bpf_thread(const struct pb_bpf_run *run);
/*
 * Spin locks in values. me: the calling thread, unique among those that live (its tid).
 * -EBUSY: the thread itself holds it (a handler can't wait), or its holder makes no
 * progress; a holder that died doesn't matter. Context: any.
 */
int pb_bpf_map_lock(const struct pb_bpf_map *map, void *value, uint32_t me);
void pb_bpf_map_unlock(const struct pb_bpf_map *map, void *value);

#endif
