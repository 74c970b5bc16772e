/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The second generator: programs around numbers. A number is loaded, bounded by
 * branches on all of it or on a half, computed with, copied, spilled and filled, and
 * then moves a pointer whose access lies just inside, or just outside, of what may be
 * touched. Where the edge is the verifier itself is asked: it says what bounds it has
 * found so far. So most programs lie where verdicts change with one bound.
 */
#ifndef PB_TEST_WEAVE_H
#define PB_TEST_WEAVE_H
#include "generate.h"

/* What is known of a register where the program ends so far, on all paths. */
struct weave_bounds {
	bool number;
	int64_t smin, smax;
};

/* Asks about r0 ... r9 before instruction `at`; false: the program is refused. */
typedef bool weave_ask(const struct gen_program *p, int at, struct weave_bounds bounds[10]);

/* The same seed, the same program (while the verifier's answers are the same). */
void weave(struct gen_program *p, uint64_t seed, weave_ask *ask);
/* Changes an accepted program a little: a bound by one, a branch's kind, a width, an instruction less. */
void weave_change(struct gen_program *p, uint64_t seed);
/* Constants of the program, and near ones, for inputs that get through its branches: at most room. */
int weave_words(const struct gen_program *p, uint64_t *words, int room);
#endif
