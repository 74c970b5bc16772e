/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loops that take only so many iterations. */
#ifndef PB_BPF_VERIFIER_ITERATIONS_H
#define PB_BPF_VERIFIER_ITERATIONS_H
#include "bpf/verifier/env.h"

/* On the path from an explored state to the present one, with the same calls, an iteration was
 * taken of a loop that takes only so many. */
bool iteration_taken(const struct env *env, const struct state *old);
/* Going on in `old`, which is done, in place of the present one makes no loop that has no end. */
bool iterations_no_fewer(const struct env *env, const struct state *old);
int pbv_check_may_goto(struct env *env, const struct bpf_insn *insn);
bool pbv_has_may_goto(const struct env *env, uint32_t sub);
#endif
