/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compares the current state with a kept state. */
#ifndef PB_BPF_VERIFIER_ALIKE_H
#define PB_BPF_VERIFIER_ALIKE_H
#include "bpf/verifier/env.h"

/* Returns whether `old` covers `cur`: everything that is safe after `old` is safe after `cur`. If
 * `whole` is set, compares all parts of the states, even parts that `old` doesn't need. */
bool pbv_state_safe(struct env *env, const struct state *old, const struct state *cur, bool whole);
/* Returns whether the states are equal. An id needn't have the same number in both states, but it
 * must link the same registers and slots. */
bool pbv_state_same(struct env *env, const struct state *old, const struct state *cur);
/* Returns whether the registers of the innermost frame are equal. This is a quick check that saves
 * most calls of pbv_state_same(). In contrast to that function, it requires that ids have the same
 * numbers. */
bool pbv_maybe_looping(const struct state *old, const struct state *cur);
#endif
