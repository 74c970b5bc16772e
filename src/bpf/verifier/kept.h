/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* States at rest: their frames hold numbers of values, and share them. */
#ifndef PB_BPF_VERIFIER_KEPT_H
#define PB_BPF_VERIFIER_KEPT_H
#include "bpf/verifier/env.h"

/* rest becomes what st is, at rest; kept: it won't be woken up to go on. 0 or -ENOMEM. */
int pbv_state_rest(struct env *env, struct state *rest, const struct state *st, bool kept);
/* st, which may be any that is taken apart, becomes what rest is. */
int pbv_state_wake(struct env *env, struct state *st, const struct state *rest);
/* All of it is given back. */
void pbv_state_forget(struct env *env, struct state *rest);
/* It won't be compared any more. */
void pbv_state_only_marks(struct env *env, struct state *rest);
/* No path from it is under way any more: what isn't needed for comparing is given back. */
void pbv_state_trim(struct env *env, struct state *rest);
/* What a register, or slot n - 11, is: without marks. */
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
