/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declarations for judge.c and judge_load.c. */
#ifndef PB_TESTS_JUDGE_H
#define PB_TESTS_JUDGE_H
extern char judge_said[1024];	/* libbpf's first warning */

/* Prints a line for each program on which libbpf and our loader disagree, and a line of counts.
 * Returns 1 if the instructions, functions or lines of a program differ. `target` is the file with
 * the types for CO-RE, or NULL. */
int judge_load(const char *path, const char *target);
#endif
