/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks an arithmetic instruction. */
#ifndef PB_BPF_VERIFIER_ALU_H
#define PB_BPF_VERIFIER_ALU_H
#include "bpf/verifier/env.h"

int pbv_check_alu(struct env *env, const struct bpf_insn *insn);
#endif
