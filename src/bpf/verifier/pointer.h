/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arithmetic on pointers. */
#ifndef PB_BPF_VERIFIER_POINTER_H
#define PB_BPF_VERIFIER_POINTER_H
#include "bpf/verifier/env.h"

int pbv_pointer_alu(struct env *env, const struct bpf_insn *insn, const struct reg *ptr,
		    const struct reg *off);
#endif
