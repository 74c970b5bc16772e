/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs in memory. A program is one mapping:
 *
 *	| head        | data                            | code      |
 *	| writable    | read-only: struct pb_bpf_prog,  | read-only,|
 *	|             | instructions, tables            | executable|
 *
 * The mapping is written before any thread can execute it. Context: any thread, but not on a hit,
 * and not in a signal handler unless a comment allows it.
 */
#ifndef PB_BPF_RUN_IMAGE_H
#define PB_BPF_RUN_IMAGE_H
#include "bpf/core/program.h"

/* Functions that supply mappings. The default functions map memory near Patchbay's own code if
 * there is room. The agent replaces them: it sets pb_bpf_pages before it makes the first
 * program. */
struct pb_bpf_pages {
	void *(*map)(size_t size);		/* returns zeroed and writable memory; NULL: there
						 * is no memory */
	/* prot: PROT_READ, PROT_READ | PROT_EXEC, or PROT_NONE (which only test_run.c uses).
	 * Returns 0 or -errno */
	int (*protect)(void *p, size_t size, int prot);
	void (*unmap)(void *p, size_t size);
};
extern const struct pb_bpf_pages *pb_bpf_pages;

/* The parts of a program. The program gets copies of the name and the arrays. It keeps the pointers
 * to its type, maps and stats, so these must exist as long as the program does. */
struct pb_bpf_prog_spec {
	uint32_t nr, nr_subs, nr_calls, nr_maps;
	const struct bpf_insn *insns;		/* resolved (program.h) */
	const uint8_t *ops;
	const struct pb_bpf_sub *subs;		/* NULL, with nr_subs 0, means: one subprogram with
						 * a frame of `stack` bytes */
	pb_bpf_fn *const *calls;
	struct pb_bpf_map *const *maps;
	const struct pb_bpf_type *type;
	uint32_t id, stack;
	uint32_t deepest, nested;		/* as in struct pb_bpf_facts (verify.h) */
	uint32_t ctx_needed;			/* the program accesses only the first ctx_needed
						 * bytes of the context */
	const char *name;
	struct pb_bpf_prog_stats *stats;	/* the counts of runs; NULL: they are in the
						 * program's own mapping */
	bool interpret;				/* the program gets no native code, whatever
						 * jit_enable is */
	bool perfmon;				/* as in struct pb_bpf_prog */
	bool privileged;			/* the loader is privileged: with jit_harden 1, the
						 * JIT doesn't blind constants */
};

/*
 * Makes a program that can run. The program has native code if jit_enable isn't 0 and the JIT
 * supports all instructions of the program. Returns 0 or -errno, for example -ENOMEM. -EINVAL:
 * operations, calls or subprograms don't have the form that program.h describes. The function
 * relies on the verifier for all other properties of the program.
 */
int pb_bpf_prog_make(const struct pb_bpf_prog_spec *spec, struct pb_bpf_prog **prog);

/* Frees a program. No run may use the program any more. prog may be NULL. */
void pb_bpf_prog_free(struct pb_bpf_prog *prog);
#endif
