/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The control-flow graph of the program: subprograms, jumps, stack depth. verify_program.c calls
 * these functions in this order. It calls the last function after it has checked all paths, because
 * the sizes of frames are known only then. */
#ifndef PB_BPF_VERIFIER_CFG_H
#define PB_BPF_VERIFIER_CFG_H
#include "bpf/verifier/env.h"

int pbv_find_subprogs(struct env *env);
int pbv_check_subprogs(struct env *env);
int pbv_check_funcs(struct env *env);
int pbv_check_cfg(struct env *env);
int pbv_check_stack_depth(struct env *env);
#endif
