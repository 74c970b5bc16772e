/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loops whose number of iterations is bounded at run time. */
#ifndef PB_BPF_VERIFIER_ITERATIONS_H
#define PB_BPF_VERIFIER_ITERATIONS_H
#include "bpf/verifier/env.h"

/* Returns whether the path from the kept state `old` to the current state has taken an iteration of
 * a loop with a budget. The two states have the same call chain. */
bool iteration_taken(const struct env *env, const struct state *old);
/* Returns whether the current path can be pruned in favour of `old` without hiding an endless loop.
 * All paths from `old` must have ended. */
bool iterations_no_fewer(const struct env *env, const struct state *old);
int pbv_check_may_goto(struct env *env, const struct bpf_insn *insn);
bool pbv_has_may_goto(const struct env *env, uint32_t sub);
#endif
