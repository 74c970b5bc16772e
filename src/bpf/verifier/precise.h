/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Marks of whose precise value matters, up the tree of states. */
#ifndef PB_BPF_VERIFIER_PRECISE_H
#define PB_BPF_VERIFIER_PRECISE_H
#include "bpf/verifier/env.h"

/* Registers and slots whose values matter, in the frames of the call chain up to the one
 * that runs. */
struct wanted {
	uint32_t frame;
	uint32_t regs[PB_BPF_MAX_FRAMES];
	uint64_t slots[PB_BPF_MAX_FRAMES];
};

/* The value of a register has decided something; those of all that are wanted have (they
 * are scalars in the present state). */
int pbv_precise_reg(struct env *env, unsigned n);
int pbv_precise_wanted(struct env *env, struct wanted *w);
void pbv_precise_forget(struct state *st);
/* Of all states before it. false: it had been before. */
bool pbv_precise_all(struct state *st);
#endif
