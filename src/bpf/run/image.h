/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs in memory. A program is one mapping,
 *
 *	| head        | data                            | code      |
 *	| writable    | read-only: struct pb_bpf_prog,  | read-only,|
 *	|             | instructions, tables            | executable|
 *
 * written while no thread can execute it. Context: not on a hit, not in a signal handler
 * unless said; any thread.
 */
#ifndef PB_BPF_RUN_IMAGE_H
#define PB_BPF_RUN_IMAGE_H
#include "bpf/core/program.h"

/* Where mappings come from. The default is mmap, near this code; the agent has one of
 * its own. Set before the first program is made. */
struct pb_bpf_pages {
	void *(*map)(size_t size);		/* zeros, writable; NULL: no room */
	/* prot: PROT_READ, PROT_READ | PROT_EXEC; 0 or -errno */
	int (*protect)(void *p, size_t size, int prot);
	void (*unmap)(void *p, size_t size);
};
extern const struct pb_bpf_pages *pb_bpf_pages;

/* What a program is made of; all is copied. */
struct pb_bpf_prog_spec {
	uint32_t nr, nr_subs, nr_calls, nr_maps;
	const struct bpf_insn *insns;		/* resolved, as program.h says */
	const uint8_t *ops;
	const struct pb_bpf_sub *subs;		/* NULL with 0: one, its frame is `stack` */
	pb_bpf_fn *const *calls;
	struct pb_bpf_map *const *maps;
	const struct pb_bpf_type *type;
	uint32_t id, stack;
	uint32_t ctx_needed;			/* bytes of the context that it accesses */
	const char *name;
	struct pb_bpf_prog_stats *stats;	/* where it counts; NULL: a place of its own */
	bool privileged;			/* the loader may learn addresses */
};

/*
 * A program that can run, with native code if jit_enable is not 0 and the JIT has
 * forms for all of it. 0; -ENOMEM; -EINVAL: it isn't what program.h says (operations,
 * calls, subprograms); more is not checked here.
 */
int pb_bpf_prog_make(const struct pb_bpf_prog_spec *spec, struct pb_bpf_prog **prog);

/* Call it when no run uses it any more. NULL: nothing. */
void pb_bpf_prog_free(struct pb_bpf_prog *prog);
#endif
