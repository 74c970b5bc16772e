/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program that is recorded: which file it is, and whether it can be traced. Context: the
 * main thread, before the program runs. */
#ifndef PB_RECORDER_TARGET_H
#define PB_RECORDER_TARGET_H
#include <limits.h>
#include <sys/types.h>

struct record_deleted;
struct record_first;

struct record_target {
	char path[PATH_MAX];	/* path of the file that is executed */
	char exe[PATH_MAX];	/* path of the ELF file: the same as `path`, or the interpreter if
				 * `path` is a script */
	/* The members from pid to name are used if the process runs already (running.h). */
	pid_t pid;		/* 0: the program is started */
	int pidfd;		/* -1: the kernel has no pidfds */
	dev_t dev;		/* device and inode of the executable */
	ino_t ino;
	struct record_deleted *deleted;	/* libraries whose files were deleted (loaded.h) */
	unsigned nr_deleted;
	struct record_first *firsts;	/* mappings of files before the attach (loaded.h) */
	unsigned nr_firsts;
	char name[16];		/* the process's name, without control characters */
	char loader[PATH_MAX];	/* path of the dynamic loader of `exe`; set only if the program is
				 * started */
};
/* Finds the program that is to be started. Returns 0. On an error, prints one line and returns the
 * exit status: 127 if the program isn't found, 126 if it can't be traced. */
int record_target_resolve(struct record_target *t, const char *prog);
#endif
