/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Comparisons of scalars: whether the outcome is known, and what each outcome implies. */
#ifndef PB_BPF_VERIFIER_COMPARE_H
#define PB_BPF_VERIFIER_COMPARE_H
#include "bpf/verifier/env.h"

#define COMPARE_UNKNOWN (-1)
/* The comparison with the operands exchanged: `a op b` is `b flip(op) a`. */
unsigned pbv_compare_flip(unsigned op);
/* Whether `a op b` holds for all values that both may have: 1, 0 (for none), or
 * COMPARE_UNKNOWN. */
int pbv_compare_decide(const struct reg *a, const struct reg *b, unsigned op, int bits);
/* Narrows both scalars: `a op b` holds (taken) or doesn't. a and b may be the same register. */
void pbv_compare_learn(struct reg *a, struct reg *b, unsigned op, bool taken, int bits);
/*
 * If bounds and bits of a scalar contradict each other, its path can't be taken. Its ranges are
 * then reset to unbounded, so that later code never sees a contradiction. With
 * BPF_F_TEST_REG_INVARIANTS a contradiction is an error, -EFAULT.
 */
int pbv_check_consistent(struct env *env, struct reg *r, const char *where);
#endif
