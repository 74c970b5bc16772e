/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks the instructions of each path, one after another. */
#ifndef PB_BPF_VERIFIER_CHECK_H
#define PB_BPF_VERIFIER_CHECK_H
#include "bpf/verifier/env.h"

int pbv_check_packet_load(struct env *env, const struct bpf_insn *insn);
int pbv_check_return(struct env *env);
int pbv_check_paths(struct env *env);
#endif
