/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The second generator: programs around numbers. A program loads a number, bounds it by
 * 64-bit or 32-bit branches, computes with it, copies, spills and fills it. Then it adds
 * the number to a pointer, and accesses memory just inside or just outside of the allowed
 * range. To know where the edge is, the generator asks the verifier which bounds it has
 * found so far. So the verdict on most programs depends on one bound.
 */
#ifndef PB_TEST_WEAVE_H
#define PB_TEST_WEAVE_H
#include "generate.h"

/* What is known of a register at the current end of the program, on all paths. */
struct weave_bounds {
	bool number;
	int64_t smin, smax;
};

/* Asks for the bounds of r0 ... r9 before instruction `at`. Returns false if the program is refused. */
typedef bool weave_ask(const struct gen_program *p, int at, struct weave_bounds bounds[10]);

/* The same seed gives the same program, as long as the verifier finds the same bounds. */
void weave(struct gen_program *p, uint64_t seed, weave_ask *ask);
/* Changes an accepted program a little: moves a bound by one, changes a branch's kind or a width, or drops an
 * instruction. */
void weave_change(struct gen_program *p, uint64_t seed);
/* Collects constants of the program and numbers near them, for inputs that pass its branches. At most `room`. */
int weave_words(const struct gen_program *p, uint64_t *words, int room);
#endif
