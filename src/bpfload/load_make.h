/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the maps and programs of an opened object. pb_bpf_make() makes all maps and fills them, but
 * leaves the elements that are to hold programs (slots) empty. pb_bpf_make_prog() verifies and
 * makes one program. If a map or program can't be made, its `why` has the reason. All other maps
 * and programs can still be made.
 *
 * Context: libc. Not to be called while the thread runs an eBPF program, or in a signal handler.
 * Only one thread at a time may use a made object. The caller keeps the object and the options
 * until pb_bpf_made_free().
 */
#ifndef PB_BPFLOAD_LOAD_MAKE_H
#define PB_BPFLOAD_LOAD_MAKE_H
#include "bpf/run/image.h"
#include "bpfload/load.h"

struct pb_bpf_made_map {
	struct pb_bpf_map *map;		/* NULL: not made */
	const char *why;		/* the reason why the map isn't made */
};

struct pb_bpf_made_prog {
	struct pb_bpf_prog *prog;	/* NULL: not made (yet) */
	const char *why;		/* if the program couldn't be made: the reason, in one line;
					 * otherwise NULL */
	uint32_t verified;		/* count of instructions that the verifier has processed */
	uint64_t ns;			/* time for verifying and resolving, in nanoseconds */
};

struct pb_bpf_made {
	const struct pb_bpf_object *object;
	struct pb_bpf_made_map *maps;	/* indexed by the map's number in the object */
	struct pb_bpf_made_prog *progs;
};

/* Sizes that the caller chooses for a map. They replace the object's sizes, or set sizes that the
 * object leaves open. */
struct pb_bpf_make_size {
	const char *map;		/* the map's name in the object */
	uint32_t key_size, value_size, max_entries;	/* 0: the object's value */
};

#define PB_BPF_MAP_IS_NEW 1
struct pb_bpf_make_opts {
	uint32_t caps, flags;		/* enum pb_bpf_caps; the BPF_F_ flags for programs */
	uint32_t cpu_slots;		/* number of per-CPU slots; 0: the number of processors */
	bool interpret;			/* make programs without native code */
	uint64_t memory;		/* limit on the bytes that are written when new maps are
					 * made and filled, over all maps, so that a small object
					 * can't take all memory. 0: the memory that is available.
					 * The limit is at most 4 GB */
	const struct pb_bpf_make_size *sizes;
	uint32_t nr_sizes;
	/* Called before a map is made. May change the number of entries in *spec. NULL: no
	 * callback. */
	void (*adjust)(void *arg, const struct pb_bpf_object_map *map,
		       struct pb_bpf_map_spec *spec);
	/*
	 * Looks for an existing map, pinned by name or shared with another object. If there is one,
	 * must fill *found as pb_bpf_map_attach() does. If find() returns 0, the map keeps its
	 * contents. If find() returns PB_BPF_MAP_IS_NEW, the map gets its initial contents. In both
	 * cases, pb_bpf_made_free() closes the map with all other maps. -ENOENT means that no map
	 * exists, so a map is made. After any other error the map can't be used. If a new map would
	 * exceed the limit `memory`, find() isn't called, because it may make one. NULL: no
	 * callback.
	 */
	int (*find)(void *arg, const struct pb_bpf_object_map *map,
		    const struct pb_bpf_map_spec *spec, struct pb_bpf_map *found);
	void *arg;
};

/*
 * Makes the maps and fills them. Freezes maps of constant variables. Returns 0, -ENOMEM, or -ENOENT
 * if `sizes` names a map that the object doesn't have.
 */
int pb_bpf_make(const struct pb_bpf_object *object, const struct pb_bpf_make_opts *opts,
		struct pb_bpf_made **made);

/*
 * Makes a program, and puts it into the maps that have a slot for it. Returns 0, the verifier's
 * -errno (-EACCES, -EINVAL, -E2BIG, ...) or -ENOMEM. After an error, progs[number].why has the
 * reason. `log` receives the verifier's log of this `level`. If `log` is NULL, a log is made only
 * after a rejection, to find the reason. If the program was made before, this function doesn't make
 * it again. But if `log` isn't NULL, it verifies the program again, to write the log.
 */
int pb_bpf_make_prog(struct pb_bpf_made *made, uint32_t number, struct pb_bpf_text *log,
		     uint32_t level);

/*
 * Like pb_bpf_make_prog(), but also makes all programs that the program may reach by tail calls.
 * These are the programs that the object puts into the program arrays that this program uses. The
 * same holds for each of them in turn. Either all these programs are made, or none. If one of them
 * can't be made or put into its slot, progs[number].why has the reason. -EBADF: a program in an
 * array isn't loaded automatically (autoload). -EINVAL: a program in an array has another type than
 * the program that uses the array.
 */
int pb_bpf_make_chain(struct pb_bpf_made *made, uint32_t number, struct pb_bpf_text *log,
		      uint32_t level);

/* In load_memory.c. Returns the limit for opts.memory. */
uint64_t pb_bpf_make_memory(uint64_t memory);

/* To be called when no run uses the programs or the maps any more. `made` may be NULL. */
void pb_bpf_made_free(struct pb_bpf_made *made);
#endif
