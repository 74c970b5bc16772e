/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* States that are kept at prune points: compared, widened, given up. */
#ifndef PB_BPF_VERIFIER_PRUNE_H
#define PB_BPF_VERIFIER_PRUNE_H
#include "bpf/verifier/env.h"

/* 1: what comes from here is known to be safe. */
int pbv_prune_visit(struct env *env);
/* An iteration begins in st: what differs from the iteration before, and decides nothing, is
 * anything, so that iterations become alike. That one's beginning is sought from `past` on towards
 * the root. */
void pbv_prune_widen(struct env *env, const struct state *past, struct state *st);
/* Memory is short: kept states are given up. false: there are none to give up. */
bool pbv_prune_make_room(struct env *env);
/* No path from a kept state is under way any more. */
void pbv_prune_done(struct env *env, struct state *st);
/* The present path needs what the kept state needs. */
int pbv_prune_take_over(struct env *env, const struct state *old);
void pbv_prune_free(struct env *env);
#endif
