/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program as it runs: verified, its references resolved. Made by resolve.c of a
 * verified program, never changed afterwards; runs on any thread, inside signal
 * handlers and nested in itself. A run allocates nothing and takes no lock.
 *
 * Resolving rewrites instructions in fields that have no meaning once they are
 * verified:
 *   LD_IMM64   imm, imm of the second: the value itself (a map's, a variable's
 *              address); src 0. A subprogram's address (src BPF_PSEUDO_FUNC) stays
 *              as it is: imm, instructions from here to it
 *   CALL       imm: index in `calls`
 *   CALL_PC    off: bytes of stack of the caller's frame (of its subprogram)
 */
#ifndef PB_BPF_PROG_H
#define PB_BPF_PROG_H
#include "bpf/insn.h"

struct pb_bpf_run;

/*
 * Helpers and callbacks. The sixth argument is the run that they belong to; the JIT
 * has it in a register of its own, so that it costs a move. Helpers that need
 * nothing of it are defined without it.
 */
typedef uint64_t pb_bpf_fn(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			   struct pb_bpf_run *run);

#define PB_BPF_MAX_FRAMES	8
#define PB_BPF_STACK		512	/* of all frames together */
#define PB_BPF_MAX_TAIL_CALLS	33

/* A call that isn't a function of C: the interpreter and the JIT know what it does. */
#define PB_BPF_OP_TAIL_CALL	PB_BPF_NR_OPS

struct pb_bpf_map;
struct pb_bpf_type;

struct pb_bpf_prog {
	uint32_t nr;			/* instructions */
	uint32_t stack;			/* bytes that its deepest chain of frames takes */
	const struct bpf_insn *insns;	/* resolved */
	const uint8_t *ops;		/* enum pb_bpf_op of each; LD_IMM64's second: NONE */
	const uint8_t *starts;		/* a bit for each instruction: a subprogram begins */
	pb_bpf_fn *const *calls;
	const struct pb_bpf_type *type;
	struct pb_bpf_map *const *maps;	/* that it uses */
	uint32_t nr_maps, id;
	char name[BPF_OBJ_NAME_LEN];
	/* the JIT's, or NULL: rdi = context, rsi = the run */
	uint64_t (*jited)(const void *ctx, struct pb_bpf_run *run);
};

/* What a program meets of the world around it, from whoever runs it. */
struct pb_bpf_host;

/* One run; on the stack of who starts it. */
struct pb_bpf_run {
	const struct pb_bpf_prog *prog;	/* the one under way: a tail call changes it */
	void *ctx;
	const struct pb_bpf_host *host;
	uint64_t cookie;		/* of the attachment */
	uint32_t lane;			/* whose per-CPU values it has to itself */
	uint32_t tail_calls;
};

/* Context: any, see above. run->prog and run->ctx are set. */
uint64_t pb_bpf_interpret(struct pb_bpf_run *run);
#endif
