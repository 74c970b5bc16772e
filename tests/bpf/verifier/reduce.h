/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reduces a program to a smaller one that still shows the same finding. */
#ifndef PB_TEST_REDUCE_H
#define PB_TEST_REDUCE_H
#include "generate.h"

typedef bool reduce_shows(const struct gen_program *p, void *arg);
/* Leaves out instructions as long as shows(p) holds. */
void reduce(struct gen_program *p, reduce_shows *shows, void *arg);
/* Prints where functions begin, and each instruction also as numbers that can be read back. */
void reduce_print(const struct gen_program *p, void (*line)(const char *text));
#endif
