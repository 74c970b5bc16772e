/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keeps states at prune points, compares the current state with kept states, and drops kept
 * states. */
#ifndef PB_BPF_VERIFIER_PRUNE_H
#define PB_BPF_VERIFIER_PRUNE_H
#include "bpf/verifier/env.h"

/* Called before each instruction. Returns 1 if a kept state covers the current state, so that the
 * current path need not be followed. A negative result is an error. */
int pbv_prune_visit(struct env *env);
/* Makes iterations of a loop alike, so that the new iteration can be pruned. Called when an
 * iteration begins in st. Searches `past` and its ancestors for the state in which the previous
 * iteration began. If a scalar has different bounds in the two states and isn't precise, makes the
 * scalar unknown in st. */
void pbv_prune_widen(struct env *env, const struct state *past, struct state *st);
/* Called when memory is short. Drops kept states. Returns false if memory is still short. */
bool pbv_prune_make_room(struct env *env);
/* Called when all paths from a kept state have ended. */
void pbv_prune_done(struct env *env, struct state *st);
/* Called when the kept state `old` covers the current state. Marks the needs of `old` in the
 * ancestors of the current state, as if the current path had read the same values and needed the
 * same precise values. */
int pbv_prune_take_over(struct env *env, const struct state *old);
void pbv_prune_free(struct env *env);
#endif
