/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Speculative execution: masks for pointer arithmetic, and paths after a mispredicted branch. */
#ifndef PB_BPF_VERIFIER_SPECULATE_H
#define PB_BPF_VERIFIER_SPECULATE_H
#include "bpf/verifier/env.h"

/* The bits have the values of enum pb_bpf_mask (verify.h), where they are explained. */
enum alu_state { ALU_MASK_SRC = 1, ALU_MASK_DST = 2, ALU_NEGATIVE = 4, ALU_SCALARS = 8,
	ALU_IMMEDIATE = 16 };
struct mask_window {
	uint8_t state;			/* bits of enum alu_state */
	uint32_t limit;			/* the pointer's limit (limit_of() in speculate.c) before
					 * the operation */
	bool left, off_in_dst;		/* left: the pointer moves to a lower address; off_in_dst:
					 * the number is in dst */
};
/* Finds the mask for `ptr += off` or `ptr -= off`. Called twice: before the operation, and again
 * after it, with `commit` set and the result as `ptr`. */
int pbv_mask_pointer(struct env *env, const struct bpf_insn *insn, const struct reg *ptr,
		     const struct reg *off,
		 struct reg *dst, struct mask_window *w, bool commit);
/* Notes that this instruction adds or subtracts two numbers on this path. Then the instruction may
 * not move a pointer on any other path, because the pointer's mask would change the numbers. */
int pbv_mask_scalar(struct env *env, const struct bpf_insn *insn);
/* Pushes the path that continues at `to` after a misprediction. On this path the registers of
 * `insn` are unknown. If `insn` is NULL, all registers keep their values. Returns false if there is
 * no memory, or if there are too many branches. */
bool pbv_speculate(struct env *env, const struct bpf_insn *insn, uint32_t to);
#endif
