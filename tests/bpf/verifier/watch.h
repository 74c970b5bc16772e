/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An interpreter of resolved programs that doesn't trust the verifier. Each byte that a
 * program accesses, or that a helper accesses for it, must lie in memory that the program
 * was given.
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
	unsigned layout;	/* selects the address of the stack and its first contents */
	uint32_t most_steps;	/* limit of steps; 0: a very high one */
	/* Called before each verified instruction. If it returns false, the run ends, for the reason in why. May be NULL. */
	bool (*look)(struct watch *w, const struct machine *m, uint32_t insn);
	void *looker;		/* for look's own use */
	/* out */
	uint64_t r0;
	bool endless;		/* the run took more than most_steps */
	bool vague;		/* the result may differ between runs: a privileged program may read unwritten stack, jump
				 * by an address, or combine memory with an address */
	char why[200];
};

/* Returns false if the program accessed memory that it wasn't given, or look ended the run. why is the reason. */
bool watch_run(struct watch *w);

/* For look. watch_frame() returns the number of the running frame (the outermost is 0), watch_reg() a register of a
 * frame (of outer frames only r6 to r10). */
int watch_frame(const struct machine *m);
uint64_t watch_reg(const struct machine *m, int frame, int reg);
#endif
