/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks 64-bit loads of constants. A constant may stand for a map, a map's value or a function. */
#ifndef PB_BPF_VERIFIER_CONSTANT_H
#define PB_BPF_VERIFIER_CONSTANT_H
#include "bpf/verifier/env.h"

int pbv_check_constants(struct env *env);
int pbv_check_ld64(struct env *env, const struct bpf_insn *insn);
/* Returns a description of the inner maps of `outer`, a map of maps. */
const struct pb_bpf_map *pbv_inner_map(struct env *env, const struct pb_bpf_map *outer);
#endif
