/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between judge.c and judge_load.c. */
#ifndef PB_TESTS_JUDGE_H
#define PB_TESTS_JUDGE_H
extern char judge_said[1024];	/* libbpf's first warning */

/* Prints a line for each program; 1 if one differs. */
int judge_load(const char *path);
#endif
