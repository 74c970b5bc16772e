/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares what the verifier deduced with what happens. While a program is verified, the
 * state before each instruction is recorded. While it runs (watch.h), the registers and the
 * stack must fit one of the states that were recorded for the instruction. So a wrong
 * deduction shows at the instruction that made it, even if it leads to no wrong access.
 */
#ifndef PB_TEST_BELIEFS_H
#define PB_TEST_BELIEFS_H
#include "bpf/verifier/env.h"
#include "generate.h"
#include "watch.h"

#define BELIEFS_MOST	40000		/* limit of recorded registers */
#define BELIEFS_STATES	8000
#define BELIEFS_VISITS	50000		/* visits of instructions, after which verification ends with -E2BIG */

/* A register, or a slot of stack. */
struct belief {
	struct reg reg;
	uint8_t frame, what;		/* register, or 11 + slot */
	uint8_t bytes;			/* for a slot: how many of its bytes hold the number */
	uint8_t zeros;			/* for a slot: which bytes are known to be 0; bit 0 is the lowest in memory */
};

struct belief_state {
	struct belief_state *next;	/* another state of the same instruction */
	uint32_t first, nr, cur;
};

struct beliefs {
	bool bases_only;		/* record only pointers through which memory is accessed */
	bool contradiction;		/* a register had contradictory bounds: its path is impossible */
	bool full;			/* there was no room for all states: nothing is checked */
	uint32_t nr, nr_states, nr_insns, visits;
	struct belief_state *of[GEN_MOST], states[BELIEFS_STATES];
	struct belief regs[BELIEFS_MOST];
};

/* Sets v->visit, so that verification records states. */
void beliefs_listen(struct beliefs *b, struct pb_bpf_verify *v);
/* Returns false if no recorded state fits; why (200 bytes) says what doesn't fit. */
bool beliefs_check(const struct beliefs *b, const struct machine *m, uint32_t insn, char *why);
#endif
