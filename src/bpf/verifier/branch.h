/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conditional jumps. */
#ifndef PB_BPF_VERIFIER_BRANCH_H
#define PB_BPF_VERIFIER_BRANCH_H
#include "bpf/verifier/env.h"

int pbv_check_branch(struct env *env, const struct bpf_insn *insn);
/* r may be NULL. Turns r into the pointer that it is if it isn't NULL. This pointer may have
 * another type: if r is the result of a lookup in a map of maps, it is a map. */
void pbv_known_pointer(struct env *env, struct reg *r);
#endif
