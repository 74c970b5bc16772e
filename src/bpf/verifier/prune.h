/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keeps states at prune points, compares the present state with kept states, and drops kept
 * states. */
#ifndef PB_BPF_VERIFIER_PRUNE_H
#define PB_BPF_VERIFIER_PRUNE_H
#include "bpf/verifier/env.h"

/* Called before each instruction. Returns 1 if a kept state covers the present state, so that the
 * present path need not be followed. A negative result is an error. */
int pbv_prune_visit(struct env *env);
/* Called when an iteration of a loop begins in st. If a scalar differs from the previous iteration
 * and isn't precise, forgets its value. The iterations thus become alike. Looks for the beginning
 * of the previous iteration from `past` up to the root. */
void pbv_prune_widen(struct env *env, const struct state *past, struct state *st);
/* Called when memory is short. Drops kept states. Returns false if memory is still short. */
bool pbv_prune_make_room(struct env *env);
/* Called when all paths from a kept state have ended. */
void pbv_prune_done(struct env *env, struct state *st);
/* What the paths from the kept state read, or needed precisely, is marked on the present path as
 * read or as needed precisely, too. */
int pbv_prune_take_over(struct env *env, const struct state *old);
void pbv_prune_free(struct env *env);
#endif
