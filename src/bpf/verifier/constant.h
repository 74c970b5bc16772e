/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks the constants in instructions that stand for maps, functions and variables. */
#ifndef PB_BPF_VERIFIER_CONSTANT_H
#define PB_BPF_VERIFIER_CONSTANT_H
#include "bpf/verifier/env.h"

int pbv_check_constants(struct env *env);
int pbv_check_ld64(struct env *env, const struct bpf_insn *insn);
/* Returns a description of the inner maps of `outer`, a map of maps. */
const struct pb_bpf_map *pbv_inner_map(struct env *env, const struct pb_bpf_map *outer);
#endif
