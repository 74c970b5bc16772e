/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compares the present state with a kept one. */
#ifndef PB_BPF_VERIFIER_ALIKE_H
#define PB_BPF_VERIFIER_ALIKE_H
#include "bpf/verifier/env.h"

/* Whether old covers cur: all that is safe after `old` is safe after `cur`. whole: compares all
 * of the state, needed or not. */
bool pbv_state_safe(struct env *env, const struct state *old, const struct state *cur, bool whole);
/* Whether the states are equal, apart from the numbers of ids. */
bool pbv_state_same(struct env *env, const struct state *old, const struct state *cur);
/* Whether the registers of the innermost frame are equal: a quick check before
 * pbv_state_same(). */
bool pbv_maybe_looping(const struct state *old, const struct state *cur);
#endif
