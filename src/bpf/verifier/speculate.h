/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a processor may do that guesses: masks of pointers, and paths that it may take. */
#ifndef PB_BPF_VERIFIER_SPECULATE_H
#define PB_BPF_VERIFIER_SPECULATE_H
#include "bpf/verifier/env.h"

enum alu_state { ALU_MASK_SRC = 1, ALU_MASK_DST = 2, ALU_NEGATIVE = 4, ALU_SCALARS = 8,
	ALU_IMMEDIATE = 16 };
struct mask_window {
	uint8_t state;
	uint32_t limit;
	bool left, off_in_dst;
};
/* What must be masked of `ptr += off`; before the operation, and once more with its result. */
int pbv_mask_pointer(struct env *env, const struct bpf_insn *insn, const struct reg *ptr,
		     const struct reg *off,
		 struct reg *dst, struct mask_window *w, bool commit);
int pbv_mask_scalar(struct env *env, const struct bpf_insn *insn);
/* The path that a processor may guess. false: no room */
bool pbv_speculate(struct env *env, const struct bpf_insn *insn, uint32_t to);
#endif
