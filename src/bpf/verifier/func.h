/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Subprograms and callbacks. */
#ifndef PB_BPF_VERIFIER_FUNC_H
#define PB_BPF_VERIFIER_FUNC_H
#include "bpf/verifier/env.h"

struct helper_call;

int pbv_check_subprog_call(struct env *env, const struct bpf_insn *insn);
int pbv_check_callback(struct env *env, const struct bpf_insn *insn,
		       const struct helper_call *call);
int pbv_leave_frame(struct env *env);
int pbv_find_subprog(const struct env *env, uint32_t insn);
#endif
