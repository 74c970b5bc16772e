/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pending states. The needs of a kept state (env.h) are the values that a later state must match. A
 * state's needs are known when all paths from the state have been followed. A state is pending if a
 * path from it jumps back to a kept state whose needs aren't known yet, because the pending state
 * has these needs, too. */
#ifndef PB_BPF_VERIFIER_PENDING_H
#define PB_BPF_VERIFIER_PENDING_H
#include "bpf/verifier/env.h"

/* Called when the current path ends by a jump to state `to`, and the needs of `to` aren't known
 * yet. */
int pbv_pending_jump(struct env *env, struct state *to);
/* Gives up the wait for needs: from now on all registers and slots of all pending states count as
 * needed. */
void pbv_pending_give_up(struct env *env);
/* Called when all paths from a pending state have ended. */
int pbv_pending_done(struct env *env, struct state *st);
#endif
