/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the verifier deduced, against what happens. While a program is verified the
 * state before each instruction is recorded; while it runs (watch.h), the registers
 * and the stack have to fit one of the states that were recorded for the instruction.
 * A wrong deduction shows at the instruction that made it, whether or not an access
 * goes wrong by it.
 */
#ifndef PB_TEST_BELIEFS_H
#define PB_TEST_BELIEFS_H
#include "bpf/verifier/env.h"
#include "generate.h"
#include "watch.h"

#define BELIEFS_MOST	40000		/* registers that are recorded */
#define BELIEFS_STATES	8000
#define BELIEFS_VISITS	50000		/* instructions that are looked at; then verifying ends with -E2BIG */

/* A register, or a slot of stack. */
struct belief {
	struct reg reg;
	uint8_t frame, what;		/* register, or 11 + slot */
	uint8_t bytes;			/* of a slot: how many hold the number */
	uint8_t zeros;			/* of a slot that holds none: bytes that are 0, bit 0 the lowest in memory */
};

struct belief_state {
	struct belief_state *next;	/* of the same instruction */
	uint32_t first, nr, cur;
};

struct beliefs {
	bool bases_only;		/* record pointers that memory is accessed through, and nothing else */
	bool contradiction;		/* a register had bounds that contradict each other: a path that can't be gone */
	bool full;			/* there was more than there is room for: nothing is known */
	uint32_t nr, nr_states, nr_insns, visits;
	struct belief_state *of[GEN_MOST], states[BELIEFS_STATES];
	struct belief regs[BELIEFS_MOST];
};

/* Sets v->visit: verifying records. */
void beliefs_listen(struct beliefs *b, struct pb_bpf_verify *v);
/* False: no state that was recorded fits; why (200 bytes) says what doesn't. */
bool beliefs_check(const struct beliefs *b, const struct machine *m, uint32_t insn, char *why);
#endif
