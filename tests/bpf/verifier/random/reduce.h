/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reduces a program to a smaller program that shows the same finding. */
#ifndef PB_TEST_REDUCE_H
#define PB_TEST_REDUCE_H
#include "generate.h"

/* Returns whether p still shows the finding. */
typedef bool reduce_shows(const struct gen_program *p, void *arg);
/* Removes instructions of p. Keeps a removal only if shows(p, arg) is true. */
void reduce(struct gen_program *p, reduce_shows *shows, void *arg);
/* Prints the program. Marks the first instruction of each function. Prints each instruction as
 * text, and as one or two numbers that bpf_fuzz_verifier -x can read. */
void reduce_print(const struct gen_program *p, void (*line)(const char *text));
#endif
