/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Comparisons of scalars. Finds whether the outcome is known, and what each outcome implies. */
#ifndef PB_BPF_VERIFIER_COMPARE_H
#define PB_BPF_VERIFIER_COMPARE_H
#include "bpf/verifier/env.h"

#define COMPARE_UNKNOWN (-1)
/* Returns the operation for exchanged operands: `a op b` is the same as `b flip(op) a`. */
unsigned pbv_compare_flip(unsigned op);
/* Returns 1 if `a op b` is known to hold for all values that a and b may have. Returns 0 if it is
 * known to hold for none of them. Otherwise returns COMPARE_UNKNOWN. */
int pbv_compare_decide(const struct reg *a, const struct reg *b, unsigned op, int bits);
/* Narrows the two scalars. If `taken` is set, `a op b` holds; otherwise it doesn't hold. a and b
 * may be the same register. */
void pbv_compare_learn(struct reg *a, struct reg *b, unsigned op, bool taken, int bits);
/*
 * If the ranges and the known bits of a scalar contradict each other, no run takes this path. In
 * this case this function resets the ranges to unbounded, so that later code never sees a range
 * without values. If BPF_F_TEST_REG_INVARIANTS is set, it returns -EFAULT instead. where: the name
 * of the scalar in the log's message.
 */
int pbv_check_consistent(struct env *env, struct reg *r, const char *where);
#endif
