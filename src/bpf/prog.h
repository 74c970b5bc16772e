/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program as it runs: verified, its references resolved. Made by the loader of
 * a verified program, never changed afterwards; runs on any thread, inside signal
 * handlers and nested in itself. A run allocates nothing and takes no lock.
 *
 * Resolving rewrites instructions in fields that have no meaning once they are
 * verified:
 *   LD_IMM64   imm, imm of the second: the value itself (a map's, a variable's, a
 *              subprogram's address); src 0
 *   CALL       imm: index in `calls`
 *   CALL_PC    off: bytes of stack of the caller's frame (of its subprogram)
 */
#ifndef PB_BPF_PROG_H
#define PB_BPF_PROG_H
#include "bpf/insn.h"

typedef uint64_t pb_bpf_fn(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5);

#define PB_BPF_MAX_FRAMES	8
#define PB_BPF_STACK		512	/* of all frames together */
#define PB_BPF_MAX_TAIL_CALLS	33

/* A call that isn't a function of C: the interpreter and the JIT know what it does. */
#define PB_BPF_OP_TAIL_CALL	PB_BPF_NR_OPS

struct pb_bpf_prog {
	uint32_t nr;			/* instructions */
	uint32_t stack;			/* bytes that its deepest chain of frames takes */
	const struct bpf_insn *insns;	/* resolved */
	const uint8_t *ops;		/* enum pb_bpf_op of each; LD_IMM64's second: NONE */
	pb_bpf_fn *const *calls;
	/* the JIT's, or NULL: rdi = context */
	uint64_t (*jited)(const void *ctx);
};

/* Context: any, see above. `ctx` as the program's type has it. */
uint64_t pb_bpf_interpret(const struct pb_bpf_prog *prog, const void *ctx);
#endif
