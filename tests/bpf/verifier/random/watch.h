/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An interpreter of resolved programs, which doesn't trust the verifier. A program, and a helper
 * that it calls, may access only bytes of the memory that the program was given.
 */
#ifndef PB_TEST_WATCH_H
#define PB_TEST_WATCH_H
#include "bpf/run/fixup.h"

struct machine;

struct watch {
	/* in */
	const struct pb_bpf_verify *v;
	const struct pb_bpf_resolved *r;
	struct pb_bpf_run *run;
	unsigned layout;	/* selects the stack's address and initial contents */
	uint32_t most_steps;	/* limit of steps; 0: a very high limit */
	/* Called before each verified instruction. If look() returns false, the run ends, and `why`
	 * has the reason. May be NULL. */
	bool (*look)(struct watch *w, const struct machine *m, uint32_t insn);
	/* out */
	uint64_t r0;
	bool endless;		/* the run was ended because it had too many steps */
	bool vague;		/* the result may differ between runs. For example, a privileged
				 * program may read unwritten stack, or compare an address with a
				 * number */
	char why[200];
};

/* Returns false if the program made a wrong access or another error. Also returns false if look()
 * ended the run, or if the run had too many steps. In all these cases, `why` has the reason. */
bool watch_run(struct watch *w);

/* These two functions are for look(). watch_frame() returns the index of the running frame; the
 * outermost frame has index 0. watch_reg() returns a register of a frame. For outer frames, it
 * returns only r6 to r10. */
int watch_frame(const struct machine *m);
uint64_t watch_reg(const struct machine *m, int frame, int reg);
#endif
