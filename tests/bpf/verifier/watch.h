/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An interpreter of resolved programs that believes nothing: every byte that they
 * touch, and that helpers touch for them, has to lie in what they were given.
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
	unsigned layout;	/* addresses of the stack, and what lies in it, differ by this */
	uint32_t most_steps;	/* 0: very many */
	/* Called before what became of a verified instruction; false: the run ends there, why says why. May be NULL. */
	bool (*look)(struct watch *w, const struct machine *m, uint32_t insn);
	void *looker;		/* look's own */
	/* out */
	uint64_t r0;
	bool endless;		/* it took most_steps */
	bool vague;		/* it read stack that was not written, jumped by an address, or combined memory with one, as the
				 * privileged may */
	char why[200];
};

/* false: it touched something else, and why says what. */
bool watch_run(struct watch *w);

/* For look: the frame that runs, the outermost is 0; a frame's registers (of outer frames r6 ... r10 only). */
int watch_frame(const struct machine *m);
uint64_t watch_reg(const struct machine *m, int frame, int reg);
#endif
