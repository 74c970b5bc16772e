/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Subprograms and callbacks. */
#ifndef PB_BPF_VERIFIER_FUNC_H
#define PB_BPF_VERIFIER_FUNC_H
#include "bpf/verifier/env.h"

struct helper_call;

/* Checks a call of a subprogram. If the subprogram is static, the path continues in it. */
int pbv_check_subprog_call(struct env *env, const struct bpf_insn *insn);
/* Checks a call of a helper that takes a callback. */
int pbv_check_callback(struct env *env, const struct bpf_insn *insn,
		       const struct helper_call *call);
/* Returns from a subprogram or callback. Sets env->insn to the next instruction of the path. */
int pbv_leave_frame(struct env *env);
/* Returns the number of the subprogram that begins at insn, or -1. */
int pbv_find_subprog(const struct env *env, uint32_t insn);
#endif
