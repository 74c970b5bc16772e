/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keeps states at prune points, compares the present state with them, and drops them. */
#ifndef PB_BPF_VERIFIER_PRUNE_H
#define PB_BPF_VERIFIER_PRUNE_H
#include "bpf/verifier/env.h"

/* Called before each instruction. Returns 1 if all paths from here are known to be safe;
 * negative: an error. */
int pbv_prune_visit(struct env *env);
/* An iteration of a loop begins in st. Forgets the value of each scalar that differs from the
 * previous iteration and isn't precise, so that iterations become alike. Looks for the beginning
 * of the previous iteration from `past` up to the root. */
void pbv_prune_widen(struct env *env, const struct state *past, struct state *st);
/* Memory is short: drops kept states. Returns false if memory is still short. */
bool pbv_prune_make_room(struct env *env);
/* Called when all paths from a kept state have ended. */
void pbv_prune_done(struct env *env, struct state *st);
/* Marks what the kept state needs as needed by the present path. */
int pbv_prune_take_over(struct env *env, const struct state *old);
void pbv_prune_free(struct env *env);
#endif
