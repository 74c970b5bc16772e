/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program that is recorded: which file it is, and whether it can be traced. Context: the
 * main thread, before the program runs. */
#ifndef PB_RECORDER_TARGET_H
#define PB_RECORDER_TARGET_H
#include <limits.h>

struct record_target {
	char path[PATH_MAX];	/* what is executed */
	char exe[PATH_MAX];	/* the ELF file: the interpreter, where path is a script */
	char loader[PATH_MAX];	/* its dynamic loader */
};
/* 0, or the exit status after one line: 127 not found, 126 can't be traced. */
int record_target_resolve(struct record_target *t, const char *prog);
#endif
