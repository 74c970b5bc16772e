/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conditional jumps. */
#ifndef PB_BPF_VERIFIER_BRANCH_H
#define PB_BPF_VERIFIER_BRANCH_H
#include "bpf/verifier/env.h"

int pbv_check_branch(struct env *env, const struct bpf_insn *insn);
#endif
