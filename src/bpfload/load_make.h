/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An opened object comes to life: its maps are made and filled, its programs verified
 * and made, each when it is asked for. What can't be made says why and leaves the rest.
 *
 * Context: libc; not in a run, not in a signal handler; one thread at a time for one
 * made object. The object and the options stay the caller's and must outlive it.
 */
#ifndef PB_BPFLOAD_LOAD_MAKE_H
#define PB_BPFLOAD_LOAD_MAKE_H
#include "bpf/run/image.h"
#include "bpfload/load.h"

struct pb_bpf_made_map {
	struct pb_bpf_map *map;		/* NULL: not made */
	const char *why;		/* and why not */
};

struct pb_bpf_made_prog {
	struct pb_bpf_prog *prog;	/* NULL: not made (yet) */
	const char *why;		/* and why not, once it was tried: one line */
	uint32_t verified;		/* instructions that the verifier looked at */
	uint64_t ns;			/* that verifying and resolving took */
};

struct pb_bpf_made {
	const struct pb_bpf_object *object;
	struct pb_bpf_made_map *maps;	/* by the object's numbers */
	struct pb_bpf_made_prog *progs;
};

/* Sizes that an object leaves to user space, or that shall be other ones. */
struct pb_bpf_make_size {
	const char *map;		/* its name in the object */
	uint32_t key_size, value_size, max_entries;	/* 0: as the object says */
};

#define PB_BPF_MAP_IS_NEW 1
struct pb_bpf_make_opts {
	uint32_t caps, flags;		/* enum pb_bpf_caps; BPF_F_ of programs */
	uint32_t lanes;			/* of per-CPU values; 0: as many as there are processors */
	const struct pb_bpf_make_size *sizes;
	uint32_t nr_sizes;
	/* Before a map is made: *spec may be changed (how many entries). May be NULL */
	void (*adjust)(void *arg, const struct pb_bpf_object_map *map,
		       struct pb_bpf_map_spec *spec);
	/*
	 * Maps that already are (pinned by name, shared with another object): fills *found as
	 * pb_bpf_map_attach() does and returns 0: it stays as it is, and is closed with the
	 * others; PB_BPF_MAP_IS_NEW: the same, but it is filled; -ENOENT: there is none, one is
	 * made; other errors: the map can't be had.
	 * May be NULL
	 */
	int (*find)(void *arg, const struct pb_bpf_object_map *map,
		    const struct pb_bpf_map_spec *spec, struct pb_bpf_map *found);
	void *arg;
};

/*
 * The maps, filled; those of variables that are constant are frozen. 0, -ENOMEM, or
 * -ENOENT: `sizes` names a map that the object doesn't have.
 */
int pb_bpf_make(const struct pb_bpf_object *object, const struct pb_bpf_make_opts *opts,
		struct pb_bpf_made **made);

/*
 * A program: 0, or -errno of the verifier (-EACCES, -EINVAL, -E2BIG, ...) or -ENOMEM,
 * with progs[number].why. log: what the verifier says, with `level`; NULL: it is only
 * asked why if it refuses. Puts the program into the maps that have a slot for it. One
 * that is made already stays; it is verified again if there is a log.
 */
int pb_bpf_make_prog(struct pb_bpf_made *made, uint32_t number, struct pb_bpf_text *log,
		     uint32_t level);

/*
 * The same with all programs that it may come to by tail calls: those that the object
 * puts into the arrays that it uses, and what these come to in turn. All of them, or none:
 * if one can't be made, or put where the object says, that is this program's error.
 * -EBADF: an array's program isn't loaded by itself (autoload); -EINVAL: it is of another type.
 */
int pb_bpf_make_chain(struct pb_bpf_made *made, uint32_t number, struct pb_bpf_text *log,
		      uint32_t level);

/* Call it when no run uses the programs or maps any more. NULL: nothing. */
void pb_bpf_made_free(struct pb_bpf_made *made);
#endif
