/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arithmetic on numbers. */
#ifndef PB_BPF_VERIFIER_SCALAR_H
#define PB_BPF_VERIFIER_SCALAR_H
#include "bpf/verifier/env.h"

/* Computes dst = dst op src, for the operation of `insn`. */
int pbv_scalar_alu(struct env *env, const struct bpf_insn *insn, struct reg *dst,
		   const struct reg *src);
/* d = -d */
void pbv_scalar_negate(struct reg *d, int bits);
/* d += s, in 64 bits */
void pbv_scalar_add(struct reg *d, const struct reg *s);
#endif
