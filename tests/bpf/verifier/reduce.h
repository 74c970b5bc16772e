/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The smallest program that still shows what a larger one shows. */
#ifndef PB_TEST_REDUCE_H
#define PB_TEST_REDUCE_H
#include "generate.h"

typedef bool reduce_shows(const struct gen_program *p, void *arg);
/* Leaves out instructions as long as shows(p) holds, then makes constants small. */
void reduce(struct gen_program *p, reduce_shows *shows, void *arg);
/* With places of subprograms; and as numbers that can be read back. */
void reduce_print(const struct gen_program *p, void (*line)(const char *text));
#endif
