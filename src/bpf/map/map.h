/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps. A map's memory is one block, which processes may share: a header, then tables. References
 * in it are indices, so each process can map it at any address. It stays usable if a process dies
 * at any instruction. doc/design/bpf.md explains how.
 *
 * Operations return 0 or the kernel's -errno. Those in struct pb_bpf_map_ops are for programs.
 * Context: any thread, and signal handlers, even a handler that interrupts an operation on the same
 * map. These operations allocate nothing, make no system call, and don't wait without bound.
 * map_sys.h has the operations of bpf(2), for calls from outside of programs; map_file.h creates
 * and opens blocks.
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

/* A pointer in a map's values, which programs access only by bpf_kptr_xchg and loads. */
struct pb_bpf_kptr {
	uint32_t off, btf_id, size;	/* off: in the value; btf_id and size: of the structure */
	const char *name;		/* the structure's name, in the process that made the map;
					 * "" in others */
	bool referenced;
};
#define PB_BPF_MAX_KPTRS 8

/* What BTF says about the values. */
struct pb_bpf_map_types {
	int32_t spin_lock_off, timer_off;	/* -1: none */
	uint32_t nr_kptrs;
	struct pb_bpf_kptr kptrs[PB_BPF_MAX_KPTRS];
	uint32_t btf_key, btf_value;	/* type ids, or 0 */
};

/* The description of a new map. */
struct pb_bpf_map_spec {
	struct pb_bpf_map_attr attr;
	struct pb_bpf_map_attr inner;	/* of maps of maps: attributes of the inner maps; type 0:
					 * the map is no map of maps */
	struct pb_bpf_map_types types;	/* spin_lock_off and timer_off must be set */
	char name[BPF_OBJ_NAME_LEN];
	uint32_t cpu_slots;		/* number of per-CPU slots: possible processors */
};
#define PB_BPF_MAX_CPU_SLOTS	1024

#define PB_BPF_MAP_MAGIC	0x3150414d46504250ull	/* "PBPFMAP1" */
#define PB_BPF_MAP_VERSION	2
#define PB_BPF_MAX_OWNERS	1024	/* 1 + processes that can have a map at the same time */

/* At the start of the block. Written once, before another process maps the block, except for
 * frozen, next_owner and owners. */
struct pb_bpf_map_head {
	uint64_t magic, size;
	struct pb_bpf_map_spec spec;
	uint32_t version, id;
	uint32_t frozen;		/* no longer writable from outside */
	uint32_t next_owner;		/* where the search for a free owner number begins, so that
					 * old numbers are reused late */
	uint32_t owners[PB_BPF_MAX_OWNERS / 32];	/* a bit for each process that has the
							 * map */
	uint32_t pad[(512 - 16 - sizeof(struct pb_bpf_map_spec) - 16 - PB_BPF_MAX_OWNERS / 8) / 4];
};
_Static_assert(sizeof(struct pb_bpf_map_head) == 512, "whole cache lines");

struct pb_bpf_map;
struct pb_bpf_prog;
struct pb_bpf_run;

/* A callback of pb_bpf_map_ops.each. Returns 0 to continue, 1 to stop. */
typedef int64_t pb_bpf_map_fn(void *arg, struct pb_bpf_map *map, const void *key, void *value);

/*
 * The operations of a map type. `run` gives the per-CPU slot (run->cpu_slot) and the thread that
 * takes locks (run->thread). It may be NULL in calls from outside: then slot 0 is used, and a
 * system call finds the thread. If runs in two processes use the same per-CPU slot of a shared map,
 * they may lose each other's increments. An operation that a type doesn't support returns the
 * kernel's error. Only the last three members may be NULL.
 */
struct pb_bpf_map_ops {
	/* Returns the bytes that the map's block needs; 0: the spec is invalid, and *err says
	 * why. */
	uint64_t (*size)(const struct pb_bpf_map_spec *spec, int *err);
	/* Makes an empty map of a block that is all zeros after its header. */
	void (*format)(void *block);
	/* Sets the type's members of map. Returns whether the block, which another process may
	 * have formatted, can be used. map->attr, inner, types and cpu_slots are already copied and
	 * checked, and fit the block's size. */
	bool (*open)(struct pb_bpf_map *map);
	/* Returns the value, or the object itself for maps of maps and of programs; NULL: none */
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
	/* Calls fn for each element, as bpf_for_each_map_elem does. Returns the number of calls,
	 * or -errno */
	int64_t (*each)(struct pb_bpf_map *map, pb_bpf_map_fn *fn, void *arg,
			struct pb_bpf_run *run);
	/* read, write and take are for calls from outside (map_sys.h). A value consists of the
	 * values of all per-CPU slots, or is the number of an object. The caller has checked
	 * flags. */
	int (*read)(struct pb_bpf_map *map, const void *key, void *value, uint64_t flags);
	int (*write)(struct pb_bpf_map *map, const void *key, const void *value, uint64_t flags);
	/* Reads an element and removes it. */
	int (*take)(struct pb_bpf_map *map, const void *key, void *value, uint64_t flags);
	/* Cleans up after processes that died during an operation. Asks the kernel which processes
	 * live. dead: an owner number whose former process has certainly died, although another
	 * process has that number now; 0: none. NULL: the type needs no repair */
	void (*repair)(struct pb_bpf_map *map, uint32_t dead);
	/* Returns the address of byte `off` of the values, for BPF_PSEUDO_MAP_VALUE; NULL: out of
	 * range */
	void *(*direct)(struct pb_bpf_map *map, uint32_t off);
	/* Of a prog_array: the program at index, for a tail call; NULL: none, or index is out of
	 * range */
	const struct pb_bpf_prog *(*prog)(struct pb_bpf_map *map, uint32_t index);
};

enum pb_bpf_object_kind {
	PB_BPF_OBJECT_PROG, PB_BPF_OBJECT_MAP, PB_BPF_OBJECT_EVENT, PB_BPF_OBJECT_CGROUP,
};

/*
 * The objects of this process to which maps of objects refer. Such a map holds ids; each process
 * knows only some of the objects. get may make system calls, find may not.
 */
struct pb_bpf_objects {
	/* Context: any. NULL: this process doesn't have the object */
	void *(*find)(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id);
	/* Returns the id (> 0) of the object that the handle refers to, and takes a reference,
	 * which put drops. -EBADF: the handle is invalid; -EINVAL: it refers to an object of
	 * another kind. */
	int64_t (*get)(const struct pb_bpf_objects *o, uint32_t kind, uint32_t handle);
	void (*put)(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id);
	void *arg;
};

enum pb_bpf_map_access { PB_BPF_MAP_READ = 1, PB_BPF_MAP_WRITE = 2 };

/* A process's view of a map. Programs get its address as their map. */
struct pb_bpf_map {
	const struct pb_bpf_map_ops *ops;
	struct pb_bpf_map_head *head;
	struct pb_bpf_map_attr attr;	/* copied from the block and checked when the map was
					 * opened */
	struct pb_bpf_map_attr inner;	/* of maps of maps: attributes of the inner maps */
	struct pb_bpf_map_types types;
	uint32_t id;
	char name[BPF_OBJ_NAME_LEN];
	bool frozen;			/* no longer writable from outside */
	uint8_t access;			/* enum pb_bpf_map_access: what calls from outside may
					 * do */
	bool special;			/* values have fields that are not copied (lock, timer,
					 * kptrs) */
	/*
	 * owner: this process's number among those that share the map (1 ... 1023). alive: returns
	 * whether the process with number `owner` lives. It makes a system call. It is called when
	 * elements run out, when a full map refuses a key (at most a few hundred times a second),
	 * and when a lock isn't released. NULL: there is no way to know, or runs may make no system
	 * calls. Then other processes, or `repair`, find what a dead process left.
	 */
	uint32_t owner;
	bool (*alive)(const struct pb_bpf_map *map, uint32_t owner);
	/* Returns true if the process is dead; then no process can get its number until
	 * unclaim(). Set if `alive` is. */
	bool (*claim)(const struct pb_bpf_map *map, uint32_t owner);
	void (*unclaim)(const struct pb_bpf_map *map, uint32_t owner);
	uint64_t asked;			/* when a run last asked which processes live */
	const struct pb_bpf_objects *objects;
	/* Wakes consumers of a ring buffer; NULL: they poll */
	void (*wake)(struct pb_bpf_map *map);
	int fd;				/* of the block's file, or -1 */
	uint64_t dev, ino;		/* of the block's file */
	uint64_t mapped;		/* bytes of address space */
	/* set by the type's open() */
	uint32_t cpu_slots;		/* 1, except in per-CPU types */
	uint32_t value_room;		/* bytes of a value, rounded up to 8 */
	uint64_t cpu_slot_size;		/* bytes from a per-CPU slot's values to the next one's */
	char *elems;			/* arrays: element i is at elems + i * elem_size; in
					 * per-CPU slot l at elems + l * cpu_slot_size + i *
					 * elem_size */
	char *values;			/* per-CPU hashes: the values of slot 0 */
	uint64_t *buckets;
	uint64_t size;			/* bytes of the block that the map uses */
	uint64_t elem_size;
	uint32_t nr_elems, mask, key_room;
};

/* ENOTSUPP, the kernel's internal number, which bpf(2) returns */
#define PB_BPF_ENOTSUPP 524

/* Returns the operations of a map type; NULL: the type isn't supported. Context: any. */
const struct pb_bpf_map_ops *pb_bpf_map_ops_of(uint32_t type);

/* Returns the bytes of the block; 0: the spec is invalid, and *err says why. Context: any. */
uint64_t pb_bpf_map_size(const struct pb_bpf_map_spec *spec, int *err);
/* The bytes of address space that a block of `size` bytes takes. A ring buffer's data, at the end
 * of the block, is mapped a second time right after the block. */
uint64_t pb_bpf_map_span(const struct pb_bpf_map_spec *spec, uint64_t size);

/* Makes an empty map of a block of pb_bpf_map_size() zero bytes. */
int pb_bpf_map_format(void *block, const struct pb_bpf_map_spec *spec, uint32_t id);

/*
 * Opens a view of a block of `size` bytes, which is mapped as pb_bpf_map_span() says. Another
 * process may have made the block, and may change it at any time: nothing in it is followed
 * unchecked. -EINVAL: it is no map. The caller then sets owner, alive, objects, wake and fd.
 * Context: any; no other thread uses `map` meanwhile.
 */
int pb_bpf_map_open(struct pb_bpf_map *map, void *block, uint64_t size);
/* Returns the size of a block, at most `size`, and sets *span to pb_bpf_map_span(). Returns 0 if
 * the block is no map. block: its first 512 bytes. */
uint64_t pb_bpf_map_block_size(const void *block, uint64_t size, uint64_t *span);

/* Whether a map may be put into `outer`, a map of maps. */
bool pb_bpf_map_fits(const struct pb_bpf_map *outer, const struct pb_bpf_map *inner);

/* The calling thread's id, for locks. If run has none, a system call gets it. */
uint32_t pb_bpf_thread(const struct pb_bpf_run *run);
/*
 * Spin locks in values. me: the calling thread's id. -EBUSY: the thread itself holds the lock (a
 * signal handler can't wait for it), or the holder makes no progress. A lock whose holder has
 * died can be taken. Context: any.
 */
int pb_bpf_map_lock(const struct pb_bpf_map *map, void *value, uint32_t me);
void pb_bpf_map_unlock(const struct pb_bpf_map *map, void *value);

#endif
