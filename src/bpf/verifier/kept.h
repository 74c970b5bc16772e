/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Packs and unpacks states. To save memory, the verifier keeps most states "at rest", that is,
 * packed: all kept states, and all waiting branches except the newest. The frames of states at rest
 * share the values of registers and slots (kept.c). */
#ifndef PB_BPF_VERIFIER_KEPT_H
#define PB_BPF_VERIFIER_KEPT_H
#include "bpf/verifier/env.h"

/* Stores a packed copy of st in *rest. kept: the copy is for comparisons, and no path will continue
 * from it. Returns 0 or -ENOMEM. */
int pbv_state_rest(struct env *env, struct state *rest, const struct state *st, bool kept);
/* Unpacks rest into st. The former contents of st are lost. */
int pbv_state_wake(struct env *env, struct state *st, const struct state *rest);
/* Frees the state's memory. */
void pbv_state_forget(struct env *env, struct state *rest);
/* Called for a state that is never compared again. Frees its values, but not its marks and
 * steps. */
void pbv_state_only_marks(struct env *env, struct state *rest);
/* Called when all paths from the state have ended. Frees the steps, and the values that comparisons
 * don't need. */
void pbv_state_trim(struct env *env, struct state *rest);
/* Returns the value of register n (n < 11) or of slot n - 11, without marks. */
const struct slot *pbv_rest_value(const struct frame *f, uint32_t n);

static inline const struct slot *rest_slot(const struct frame *f, uint32_t n)
{
	return pbv_rest_value(f, 11 + n);
}

static inline const struct reg *rest_reg(const struct frame *f, uint32_t n)
{
	return &pbv_rest_value(f, n)->reg;
}
#endif
