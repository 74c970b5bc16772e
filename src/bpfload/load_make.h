/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the maps and programs of an opened object. All maps are made and filled at once. Each
 * program is verified and made when the caller asks for it. If a map or program can't be made, its
 * `why` has the reason, and the rest is made.
 *
 * Context: libc; not in a run, not in a signal handler; one thread at a time for one made object.
 * The caller keeps the object and the options until pb_bpf_made_free().
 */
#ifndef PB_BPFLOAD_LOAD_MAKE_H
#define PB_BPFLOAD_LOAD_MAKE_H
#include "bpf/run/image.h"
#include "bpfload/load.h"

struct pb_bpf_made_map {
	struct pb_bpf_map *map;		/* NULL: not made */
	const char *why;		/* why the map isn't made */
};

struct pb_bpf_made_prog {
	struct pb_bpf_prog *prog;	/* NULL: not made (yet) */
	const char *why;		/* if making the program has failed: why, in one line;
					 * otherwise NULL */
	uint32_t verified;		/* instructions that the verifier looked at */
	uint64_t ns;			/* nanoseconds that verifying and resolving took */
};

struct pb_bpf_made {
	const struct pb_bpf_object *object;
	struct pb_bpf_made_map *maps;	/* by the object's numbers */
	struct pb_bpf_made_prog *progs;
};

/* Sizes of a map that the object leaves to user space, or that replace the object's. */
struct pb_bpf_make_size {
	const char *map;		/* its name in the object */
	uint32_t key_size, value_size, max_entries;	/* 0: as the object says */
};

#define PB_BPF_MAP_IS_NEW 1
struct pb_bpf_make_opts {
	uint32_t caps, flags;		/* enum pb_bpf_caps; BPF_F_ of programs */
	uint32_t cpu_slots;		/* per-CPU slots; 0: as many as there are processors */
	const struct pb_bpf_make_size *sizes;
	uint32_t nr_sizes;
	/* Called before a map is made; may change *spec (the number of entries). May be NULL */
	void (*adjust)(void *arg, const struct pb_bpf_object_map *map,
		       struct pb_bpf_map_spec *spec);
	/*
	 * Looks for a map that exists already (pinned by name, shared with another object), and
	 * fills *found as pb_bpf_map_attach() does. Returns 0: the map keeps its contents, and is
	 * closed with the others. PB_BPF_MAP_IS_NEW: like 0, but the map is filled. -ENOENT: there
	 * is none, so a map is made. Other errors: the map can't be used. May be NULL
	 */
	int (*find)(void *arg, const struct pb_bpf_object_map *map,
		    const struct pb_bpf_map_spec *spec, struct pb_bpf_map *found);
	void *arg;
};

/*
 * Makes the maps and fills them; maps of constant variables are frozen. Returns 0, -ENOMEM, or
 * -ENOENT: `sizes` names a map that the object doesn't have.
 */
int pb_bpf_make(const struct pb_bpf_object *object, const struct pb_bpf_make_opts *opts,
		struct pb_bpf_made **made);

/*
 * Makes a program, and puts it into the maps that have a slot for it. Returns 0, or -errno of the
 * verifier (-EACCES, -EINVAL, -E2BIG, ...) or -ENOMEM, with the reason in progs[number].why. log:
 * receives the verifier's log of this `level`; NULL: a log is made only if the verifier rejects the
 * program, to find the reason. A program that has already been made stays; if `log` is given, the
 * program is verified again.
 */
int pb_bpf_make_prog(struct pb_bpf_made *made, uint32_t number, struct pb_bpf_text *log,
		     uint32_t level);

/*
 * Like pb_bpf_make_prog(), but also makes all programs that the program may reach by tail calls.
 * These are the programs that the object puts into the arrays that the program uses, and the
 * programs that these may reach in turn. All of them are made, or none. If one can't be made or
 * put into its slot, program `number` gets the error. -EBADF: a program in an array isn't loaded
 * automatically (autoload). -EINVAL: a program in an array is of another type.
 */
int pb_bpf_make_chain(struct pb_bpf_made *made, uint32_t number, struct pb_bpf_text *log,
		      uint32_t level);

/* To be called when no run uses the programs or maps any more. made may be NULL. */
void pb_bpf_made_free(struct pb_bpf_made *made);
#endif
