/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An interpreter of resolved programs that believes nothing: every byte that they
 * touch, and that helpers touch for them, has to lie in what they were given.
 */
#ifndef PB_TEST_WATCH_H
#define PB_TEST_WATCH_H
#include "bpf/resolve.h"

struct watch {
	/* in */
	const struct pb_bpf_verify *v;
	const struct pb_bpf_resolved *r;
	struct pb_bpf_run *run;
	unsigned layout;	/* addresses of the stack, and what lies in it, differ by this */
	/* out */
	uint64_t r0;
	bool vague;		/* it read stack that nobody wrote, or jumped by an address, as the privileged may */
	char why[200];
};

/* false: it touched something else, and why says what. */
bool watch_run(struct watch *w);
#endif
