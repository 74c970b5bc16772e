/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether the present state is as safe as a kept one. */
#ifndef PB_BPF_VERIFIER_ALIKE_H
#define PB_BPF_VERIFIER_ALIKE_H
#include "bpf/verifier/env.h"

/* What is safe after `old` is safe after `cur`. whole: all of it counts, needed or not. */
bool pbv_state_safe(struct env *env, const struct state *old, const struct state *cur, bool whole);
/* They are equal, but for the names of what is the same. */
bool pbv_state_same(struct env *env, const struct state *old, const struct state *cur);
/* Registers of the frame that runs are equal: a quick look before state_same. */
bool pbv_maybe_looping(const struct state *old, const struct state *cur);
#endif
