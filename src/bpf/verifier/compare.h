/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Comparisons: whether one is decided, and what each outcome tells. */
#ifndef PB_BPF_VERIFIER_COMPARE_H
#define PB_BPF_VERIFIER_COMPARE_H
#include "bpf/verifier/env.h"

#define COMPARE_UNKNOWN (-1)
/* The comparison with both sides changed: `a op b` is `b flip(op) a`. */
unsigned pbv_compare_flip(unsigned op);
/* Of all values that both scalars may have, does it hold? 1, 0, COMPARE_UNKNOWN. */
int pbv_compare_decide(const struct reg *a, const struct reg *b, unsigned op, int bits);
/* It holds (taken), or it doesn't. a may be b. */
void pbv_compare_learn(struct reg *a, struct reg *b, unsigned op, bool taken, int bits);
/*
 * If bounds and bits of a scalar contradict each other, its path can't be taken. Its
 * ranges are then reset to unbounded, so that later code never sees a contradiction.
 * With BPF_F_TEST_REG_INVARIANTS the contradiction is -EFAULT.
 */
int pbv_check_consistent(struct env *env, struct reg *r, const char *where);
#endif
