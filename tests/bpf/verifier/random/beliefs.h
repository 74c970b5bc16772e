/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares the verifier's deductions with a run of the program. While a program is verified, the
 * state before each instruction is recorded. While the program runs (watch.h), the registers and
 * the stack must fit one of the instruction's recorded states. If the verifier makes a wrong
 * deduction, the check fails at the next instruction. It fails even if no wrong access follows.
 */
#ifndef PB_TEST_BELIEFS_H
#define PB_TEST_BELIEFS_H
#include "bpf/verifier/env.h"
#include "generate.h"
#include "watch.h"

#define BELIEFS_MOST	40000		/* limit of recorded registers and slots */
#define BELIEFS_STATES	8000		/* limit of recorded states */
#define BELIEFS_VISITS	50000		/* limit of visited instructions; beyond it, verification
					 * ends with -E2BIG */

/* What the verifier knows of a register, or of a stack slot. */
struct belief {
	struct reg reg;
	uint8_t frame, what;		/* what: a register's number, or 11 + a slot's number */
	uint8_t bytes;			/* for a slot: number of bytes that hold a spilled value */
	uint8_t zeros;			/* for a slot: a bit for each byte that is known to be 0;
					 * bit 0 is the byte with the lowest address */
};

struct belief_state {
	/* next: another state of the same instruction; first, nr: the state's beliefs are the `nr`
	 * elements of beliefs.regs[] from `first` on; cur: the number of the running frame */
	struct belief_state *next;
	uint32_t first, nr, cur;
};

struct beliefs {
	bool bases_only;		/* record only pointers that are bases of memory accesses */
	bool contradiction;		/* a register had contradictory bounds, so its path is
					 * impossible */
	bool full;			/* there was no room for all states, so nothing is
					 * checked */
	uint32_t nr, nr_states, nr_insns, visits;
	struct belief_state *of[GEN_MOST], states[BELIEFS_STATES];
	struct belief regs[BELIEFS_MOST];
};

/* Sets v->visit, so that verification records states. */
void beliefs_listen(struct beliefs *b, struct pb_bpf_verify *v);
/* Returns false if no recorded state fits. In that case, `why` (200 bytes) says what doesn't
 * fit. */
bool beliefs_check(const struct beliefs *b, const struct machine *m, uint32_t insn, char *why);
#endif
