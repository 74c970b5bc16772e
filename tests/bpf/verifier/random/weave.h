/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The second generator. Its programs test the bounds of numbers. A program loads a number, bounds
 * it by 64-bit or 32-bit branches, computes with it, and copies, spills and fills it. Then it adds
 * the number to a pointer, and accesses memory just inside or just outside of the allowed range. To
 * find the edge of this range, the generator asks the verifier for the number's bounds. So the
 * verdict on most programs depends on a single bound.
 */
#ifndef PB_TEST_WEAVE_H
#define PB_TEST_WEAVE_H
#include "generate.h"

/* What the verifier knows of a register at the current end of the program, on all paths
 * together. */
struct weave_bounds {
	bool number;
	int64_t smin, smax;
};

/* Asks for the bounds of r0 ... r9 before instruction `at`. Returns false if the program is
 * refused. */
typedef bool weave_ask(const struct gen_program *p, int at, struct weave_bounds bounds[10]);

/* Makes a random program. As long as the verifier finds the same bounds, the same seed gives the
 * same program. */
void weave(struct gen_program *p, uint64_t seed, weave_ask *ask);
/* Changes an accepted program a little. For example, changes a constant by one, changes a branch's
 * kind, a width or a register, or removes an instruction. */
void weave_change(struct gen_program *p, uint64_t seed);
/* Collects constants of the program and numbers near these constants. Inputs with these numbers
 * often pass the program's branches. Returns the count of the numbers, at most `room`. */
int weave_words(const struct gen_program *p, uint64_t *words, int room);
#endif
