/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pending states. The needs of a state (env.h) are what a later state must have in common with it.
 * They are known when all paths from the state have been followed. A state is pending if a path
 * from it jumps back to a kept state whose needs aren't known yet. Then its own needs aren't known,
 * either. */
#ifndef PB_BPF_VERIFIER_PENDING_H
#define PB_BPF_VERIFIER_PENDING_H
#include "bpf/verifier/env.h"

/* Called when the current path ends by a jump to state `to`, and the needs of `to` aren't known
 * yet. */
int pbv_pending_jump(struct env *env, struct state *to);
/* Gives up all pending states: from now on all of their registers and slots count as needed. */
void pbv_pending_give_up(struct env *env);
/* Called when all paths from a pending state have ended. */
int pbv_pending_done(struct env *env, struct state *st);
#endif
