/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between judge.c and judge_load.c. */
#ifndef PB_TESTS_JUDGE_H
#define PB_TESTS_JUDGE_H
extern char judge_said[1024];	/* libbpf's first warning */

/* Prints a line for each program that isn't the same, and one of counts; 1 if one
 * differs. target: the file with CO-RE's types, or NULL. */
int judge_load(const char *path, const char *target);
#endif
