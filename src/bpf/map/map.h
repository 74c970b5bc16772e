/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps. A map's memory is one block: a header, then tables. Processes may share the block.
 * References inside the block are indices, so each process can map the block at any address. The
 * block stays usable even if a process dies in the middle of an operation. doc/design/bpf.md
 * explains how.
 *
 * Operations return 0 or the kernel's -errno. In struct pb_bpf_map_ops, lookup, update, remove,
 * push, pop, peek, each and prog are for programs. These operations allocate nothing, and their
 * waits are bounded. They make no system call themselves, but they may call alive, claim, unclaim
 * and wake of struct pb_bpf_map. Only these callbacks may make system calls. Context: any thread,
 * and signal handlers. A handler may call an operation while it interrupts another operation on the
 * same map. Calls from *outside* are calls that don't come from a program. They use the operations
 * of bpf(2) in map_sys.h. map_file.h creates and opens blocks.
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

/* A pointer in a map's values. Programs may load the pointer. If `referenced` is set, programs may
 * change it only by bpf_kptr_xchg. Otherwise they may change it only by a store of 8 bytes. */
struct pb_bpf_kptr {
	uint32_t off, btf_id, size;	/* off: offset of the pointer in the value; btf_id and size
					 * describe the structure to which the pointer points */
	const char *name;		/* the structure's name in the process that made the map; ""
					 * in other processes */
	bool referenced;		/* the pointer holds a reference (BTF's tag kptr_ref) */
};
#define PB_BPF_MAX_KPTRS 8

/* The facts about a map's values that come from BTF. */
struct pb_bpf_map_types {
	int32_t spin_lock_off, timer_off;	/* -1: none */
	uint32_t nr_kptrs;
	struct pb_bpf_kptr kptrs[PB_BPF_MAX_KPTRS];
	uint32_t btf_key, btf_value;	/* BTF type ids of key and value; 0: none */
};

/* The description of a new map. */
struct pb_bpf_map_spec {
	struct pb_bpf_map_attr attr;
	struct pb_bpf_map_attr inner;	/* for maps of maps: attributes of the inner maps; if
					 * inner.type is 0, the map is no map of maps */
	struct pb_bpf_map_types types;	/* the caller must set spin_lock_off and timer_off */
	char name[BPF_OBJ_NAME_LEN];
	uint32_t cpu_slots;		/* number of per-CPU slots, one for each possible
					 * processor */
};
#define PB_BPF_MAX_CPU_SLOTS	1024

#define PB_BPF_MAP_MAGIC	0x3150414d46504250ull	/* "PBPFMAP1" */
#define PB_BPF_MAP_VERSION	5
#define PB_BPF_MAX_OWNERS	1024	/* 1 + the number of processes that can have a map at the
					 * same time */

/* The header at the start of a block. The process that makes the map writes the header before
 * another process maps the block. Later only frozen, next_owner, owners and stuck change. */
struct pb_bpf_map_head {
	uint64_t magic, size;
	struct pb_bpf_map_spec spec;
	uint32_t version, id;
	uint32_t frozen;		/* the map is no longer writable from outside */
	uint32_t next_owner;		/* count of the searches for a free owner number. Each
					 * search begins one number after the previous search, so
					 * that numbers are reused late */
	uint32_t owners[PB_BPF_MAX_OWNERS / 32];	/* one bit for each process that has the
							 * map */
	uint32_t pad[(512 - 16 - sizeof(struct pb_bpf_map_spec) - 16 - PB_BPF_MAX_OWNERS / 8) / 4 -
		     2];
	uint64_t stuck;			/* 0, or the offset in the block of a lock or bucket for
					 * which a process without `alive` waits. See
					 * pb_bpf_map_release_dead() */
};
_Static_assert(sizeof(struct pb_bpf_map_head) == 512, "whole cache lines");

struct pb_bpf_map;
struct pb_bpf_prog;
struct pb_bpf_run;

/* A callback of pb_bpf_map_ops.each. Returns 0 to continue, 1 to stop. */
typedef int64_t pb_bpf_map_fn(void *arg, struct pb_bpf_map *map, const void *key, void *value);

/*
 * The operations of a map type. `run` gives the per-CPU slot (run->cpu_slot) and the thread that
 * takes locks (run->thread). In calls from outside, `run` may be NULL. Such calls use slot 0, and
 * find the thread by a system call. If runs in two processes use the same per-CPU slot of a shared
 * map, increments may be lost. If a type doesn't support an operation, the operation returns the
 * kernel's error. Only `written` and the last six members may be NULL.
 */
struct pb_bpf_map_ops {
	/* Returns the number of bytes that the map's block needs. 0: the spec is invalid, and *err
	 * says why. */
	uint64_t (*size)(const struct pb_bpf_map_spec *spec, int *err);
	/* Turns a block into an empty map. Before the call, all bytes after the block's header are
	 * 0. */
	void (*format)(void *block);
	/* Returns how many bytes format() writes. The block takes this much memory even if the map
	 * stays empty. NULL: only a few */
	uint64_t (*written)(const struct pb_bpf_map_spec *spec);
	/* Sets the members of `map` that depend on the type. Another process may have formatted the
	 * block. Returns whether the block can be used. The caller has copied and checked attr,
	 * inner, types and cpu_slots of `map`; they fit the block's size. */
	bool (*open)(struct pb_bpf_map *map);
	/* Returns the value. For a map of objects (enum pb_bpf_object_kind), returns the object
	 * itself. NULL: none */
	void *(*lookup)(struct pb_bpf_map *map, const void *key, struct pb_bpf_run *run);
	int (*update)(struct pb_bpf_map *map, const void *key, const void *value, uint64_t flags,
		      struct pb_bpf_run *run);
	int (*remove)(struct pb_bpf_map *map, const void *key, struct pb_bpf_run *run);
	int (*next_key)(struct pb_bpf_map *map, const void *key, void *next);
	/* push, pop and peek are only for queues and stacks. */
	int (*push)(struct pb_bpf_map *map, const void *value, uint64_t flags,
		    struct pb_bpf_run *run);
	int (*pop)(struct pb_bpf_map *map, void *value, struct pb_bpf_run *run);
	int (*peek)(struct pb_bpf_map *map, void *value, struct pb_bpf_run *run);
	/* Calls fn for each element, as bpf_for_each_map_elem does. Returns the number of calls,
	 * or -errno */
	int64_t (*each)(struct pb_bpf_map *map, pb_bpf_map_fn *fn, void *arg,
			struct pb_bpf_run *run);
	/* read, write and take are for calls from outside (map_sys.h). In a per-CPU map, a value
	 * consists of the values of all slots. In a map of objects, read() gives an object's id,
	 * and write() takes an object's handle. The caller has checked the flags. */
	int (*read)(struct pb_bpf_map *map, const void *key, void *value, uint64_t flags);
	int (*write)(struct pb_bpf_map *map, const void *key, const void *value, uint64_t flags);
	/* Reads an element and removes it. */
	int (*take)(struct pb_bpf_map *map, const void *key, void *value, uint64_t flags);
	/* Cleans up after processes that died during an operation. Asks the kernel which processes
	 * live. dead: 0, or the owner number of this process. If `dead` isn't 0, the process that
	 * had this number before has died. The kernel can't report that death, because this process
	 * now has the number. If `repair` is NULL, the type needs no repair */
	void (*repair)(struct pb_bpf_map *map, uint32_t dead);
	/* at: an address in the block, where another process waits for a lock or a bucket. If a
	 * dead process has it, releases it. NULL: what is at `at` is a lock */
	void (*release)(struct pb_bpf_map *map, void *at);
	/* Makes the map consistent after a thread was stopped in the middle of a change. The caller
	 * has the lock of writers. NULL: changes leave nothing to do */
	void (*mend)(struct pb_bpf_map *map);
	/* Returns the address of byte `off` of the values, for BPF_PSEUDO_MAP_VALUE. NULL: `off` is
	 * out of range */
	void *(*direct)(struct pb_bpf_map *map, uint32_t off);
	/* Only for a prog_array. Returns the program at index, for a tail call. NULL: there is no
	 * program, or index is out of range */
	const struct pb_bpf_prog *(*prog)(struct pb_bpf_map *map, uint32_t index);
	/* Releases what a run has noted by takes() (host.h), if `what` still has the word. Returns
	 * false if `what` is a lock. NULL: it is always a lock */
	bool (*abandon)(struct pb_bpf_map *map, void *what, uint64_t word);
};

enum pb_bpf_object_kind {
	PB_BPF_OBJECT_PROG, PB_BPF_OBJECT_MAP, PB_BPF_OBJECT_EVENT, PB_BPF_OBJECT_CGROUP,
};

/*
 * Finds the objects of this process. Maps of objects (prog_array, for example) hold ids of objects.
 * A process may have only some of the objects whose ids a map holds. `get` may make system calls;
 * `find` may not.
 */
struct pb_bpf_objects {
	/* Context: any. NULL: this process doesn't have the object */
	void *(*find)(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id);
	/* Returns the id (> 0) of the object to which the handle refers, and takes a reference.
	 * `put` drops the reference. -EBADF: the handle is invalid. -EINVAL: the handle refers to
	 * an object of another kind. */
	int64_t (*get)(const struct pb_bpf_objects *o, uint32_t kind, uint32_t handle);
	void (*put)(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id);
	void *arg;
};

enum pb_bpf_map_access { PB_BPF_MAP_READ = 1, PB_BPF_MAP_WRITE = 2 };

/* A process's view of a map. A program gets the address of this structure as the address of the
 * map. */
struct pb_bpf_map {
	const struct pb_bpf_map_ops *ops;
	struct pb_bpf_map_head *head;
	struct pb_bpf_map_attr attr;	/* copied from the block and checked when the map was
					 * opened */
	struct pb_bpf_map_attr inner;	/* for maps of maps: attributes of the inner maps */
	struct pb_bpf_map_types types;
	uint32_t id;
	char name[BPF_OBJ_NAME_LEN];
	bool frozen;			/* the map is no longer writable from outside */
	uint8_t access;			/* rights of calls from outside: enum pb_bpf_map_access */
	bool special;			/* the values have fields that are never copied (lock,
					 * timer, kptrs) */
	/*
	 * owner: the number of this process among the processes that share the map (1 ... 1023).
	 * 0: it has none. Then it never counts as dead.
	 *
	 * alive: returns whether the process with number `owner` lives, by a system call.
	 * Operations ask which processes live in these cases:
	 *   - elements run out
	 *   - a lock, the bucket of a stack trace, or a ring buffer's record that the consumer
	 *     waits for isn't released
	 *   - a full map refuses a key or a record, or no word is free to announce a change
	 *     (map_hash.h). In this case, they ask at most a few hundred times a second
	 * `alive` is NULL if this process can't find out which processes live, or if its runs may
	 * make no system calls. Then another process that has `alive` frees a dead process's
	 * elements and records, or `repair` does when a process gets the dead process's number. If
	 * it waits for a lock or a bucket of a dead process, another process releases it
	 * (pb_bpf_map_release_dead()).
	 */
	uint32_t owner;
	bool (*alive)(const struct pb_bpf_map *map, uint32_t owner);
	/* Returns true if the process is dead. In this case claim() also reserves the dead
	 * process's number: no process can get the number until unclaim(). If claim is NULL,
	 * operations use `alive` instead. */
	bool (*claim)(const struct pb_bpf_map *map, uint32_t owner);
	void (*unclaim)(const struct pb_bpf_map *map, uint32_t owner);
	uint64_t asked;			/* the value that pb_cpu_counter() had when an operation
					 * last asked which processes live */
	const struct pb_bpf_objects *objects;
	/* Wakes consumers of a ring buffer. NULL: the consumers poll */
	void (*wake)(struct pb_bpf_map *map);
	int fd;				/* descriptor of the block's file, or -1 */
	uint64_t dev, ino;		/* device and inode of the block's file */
	uint64_t mapped;		/* number of mapped bytes */
	/* pb_bpf_map_open() and the type's open() set the following members */
	uint32_t cpu_slots;		/* 1, except for per-CPU types */
	uint32_t value_room;		/* bytes of a value, rounded up to 8 */
	uint64_t cpu_slot_size;		/* distance between the values of one per-CPU slot and those
					 * of the next slot, in bytes */
	char *elems;			/* for arrays: element i is at elems + i * elem_size; in
					 * per-CPU slot l, it is at elems + l * cpu_slot_size + i *
					 * elem_size */
	char *values;			/* for per-CPU hashes: the values of slot 0 */
	uint64_t *buckets;		/* for hashes: the heads of the lists */
	uint64_t size;			/* bytes of the block that the map uses */
	uint64_t elem_size;
	uint32_t nr_elems, mask, key_room;
};

/* ENOTSUPP: the kernel's internal error number, which bpf(2) returns */
#define PB_BPF_ENOTSUPP 524

/* Returns the operations of a map type. NULL: the type isn't supported. Context: any. */
const struct pb_bpf_map_ops *pb_bpf_map_ops_of(uint32_t type);

/* Returns the number of bytes of the block. 0: the spec is invalid, and *err says why. Context:
 * any. */
uint64_t pb_bpf_map_size(const struct pb_bpf_map_spec *spec, int *err);
/* Returns the number of bytes of address space that a block of `size` bytes takes. For a ring
 * buffer it is more than `size`: the data at the end of the block is mapped a second time, right
 * after the block. */
uint64_t pb_bpf_map_span(const struct pb_bpf_map_spec *spec, uint64_t size);

/* Returns how many bytes pb_bpf_map_format() writes, if there are many. */
uint64_t pb_bpf_map_written(const struct pb_bpf_map_spec *spec);

/* Turns a block of pb_bpf_map_size() zero bytes into an empty map. */
int pb_bpf_map_format(void *block, const struct pb_bpf_map_spec *spec, uint32_t id);

/*
 * Opens a view of a block. size, span: what pb_bpf_map_block_size() or pb_bpf_map_size() and
 * pb_bpf_map_span() returned for the block; the caller has mapped `span` bytes. Another process may
 * have made the block, and may change it at any time. So this function checks that the block still
 * has this size and span, and operations check each reference in the block before they use it.
 * -EINVAL: the block is no map, or not the map that was mapped. After the call, the caller must set
 * owner, alive, claim, unclaim, objects, wake and fd. Context: any, but no other thread may use
 * `map` during the call.
 */
int pb_bpf_map_open(struct pb_bpf_map *map, void *block, uint64_t size, uint64_t span);
/* Returns the size of a block, at most `size`, and sets *span to pb_bpf_map_span(). Returns 0 if
 * the block is no map. block: the first 512 bytes of the block. */
uint64_t pb_bpf_map_block_size(const void *block, uint64_t size, uint64_t *span);

/* Returns the calling thread's id, for locks. If `run` has no id, gets the id by a system call. */
uint32_t pb_bpf_thread(const struct pb_bpf_run *run);
/*
 * Spin locks in values. me: the calling thread's id. -EBUSY: the thread itself holds the lock, or
 * the holder makes no progress. (If a signal handler has interrupted the lock's holder, the handler
 * can't wait for the lock.) If the map has `alive`, pb_bpf_map_lock() takes the lock from a dead
 * holder. Context: any.
 */
int pb_bpf_map_lock(const struct pb_bpf_map *map, void *value, uint32_t me);
void pb_bpf_map_unlock(const struct pb_bpf_map *map, void *value);
/* The same for a run. They call the host's takes() and gives() (host.h), so that the host can
 * release the lock if the run is abandoned. */
int pb_bpf_value_lock(struct pb_bpf_map *map, void *value, struct pb_bpf_run *run);
void pb_bpf_value_unlock(struct pb_bpf_map *map, void *value, struct pb_bpf_run *run);
/* Releases what a run has taken if the run never goes on, except records of ring buffers. Does
 * nothing if the run doesn't have it. what, word: the arguments of takes(). Context: any. */
void pb_bpf_map_abandon(struct pb_bpf_map *map, void *what, uint64_t word);

#endif
