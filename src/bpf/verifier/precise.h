/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Precision: marks scalars whose exact values matter, in the current state's ancestors. */
#ifndef PB_BPF_VERIFIER_PRECISE_H
#define PB_BPF_VERIFIER_PRECISE_H
#include "bpf/verifier/env.h"

/* Registers and stack slots whose values matter, for each frame of the call chain. `frame` is the
 * number of the innermost frame. */
struct wanted {
	uint32_t frame;
	uint32_t regs[PB_BPF_MAX_FRAMES];
	uint64_t slots[PB_BPF_MAX_FRAMES];
};

/* Called when the program's safety depends on the value of register n, or on all values in *w.
 * These are scalars of the current state. Both functions mark, in the state's ancestors, the values
 * from which these scalars were computed. */
int pbv_precise_reg(struct env *env, unsigned n);
int pbv_precise_wanted(struct env *env, struct wanted *w);
/* Clears the marks of precise values in the state's own registers and slots. */
void pbv_precise_forget(struct state *st);
/* Marks all scalars of all ancestors of st as precise. Returns false if all of them had been marked
 * before. */
bool pbv_precise_all(struct state *st);
#endif
