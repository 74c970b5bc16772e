/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The second generator: programs around numbers. A number is loaded, bounded by
 * branches on all of it or on a half, computed with, copied, spilled and filled. Then it
 * moves a pointer, and an access through the pointer lies just inside or just outside of
 * the allowed memory. To know where the edge is, the generator asks the verifier which
 * bounds it has found so far. So the verdict on most programs depends on one bound.
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
/* Changes an accepted program a little: a bound by one, a branch's kind, a width, an instruction less. */
void weave_change(struct gen_program *p, uint64_t seed);
/* Collects constants of the program and numbers near them, for inputs that pass its branches. At most `room`. */
int weave_words(const struct gen_program *p, uint64_t *words, int room);
#endif
