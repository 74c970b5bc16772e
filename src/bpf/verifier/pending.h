/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* States whose needs are not known yet, as a path leads back to them. */
#ifndef PB_BPF_VERIFIER_PENDING_H
#define PB_BPF_VERIFIER_PENDING_H
#include "bpf/verifier/env.h"

/* The present path ends in a state whose needs aren't known yet. */
int pbv_pending_jump(struct env *env, struct state *to);
/* All that is pending matters, for good: nothing is noted any more. */
void pbv_pending_give_up(struct env *env);
/* A state that is pending is done: all paths from it have ended. */
int pbv_pending_done(struct env *env, struct state *st);
#endif
