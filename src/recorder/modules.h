/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keeps the modules of a recording: their analyses and their numbers. Context: the main thread. */
#ifndef PB_RECORDER_MODULES_H
#define PB_RECORDER_MODULES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/analysis.h"
#include "abi/messages.h"
#include "reader/datadir_writer.h"

struct record_ahead;
struct record_options;

struct record_module {
	uint32_t number;	/* index in the list, plus 1 */
	char *path;
	dev_t dev;		/* dev, ino and ctime_ns are those of the file that was analysed */
	ino_t ino;
	int64_t ctime_ns;
	int fd;			/* descriptor of the analysis */
	const struct pb_analysis *map;
	uint64_t size;
	int stubs_fd;		/* descriptor of the module's file of stubs; -1: not made yet */
	uint64_t stubs_size;
	bool written;			/* the data directory has the analysis */
	bool traced;			/* the module is traced in at least one image, or would
					 * be if it had functions */
	bool no_numbers;		/* at least one image had too few unused site numbers for
					 * the module's functions */
	bool marked;			/* record_marks_apply() was called for the module */
	int marked_fd;			/* descriptor of the copy with marks (marks.c), which agents
					 * get instead of the analysis; -1: no pattern matches */
	uint64_t marked_size;
	uint64_t links[PB_MSG_LINKS];	/* a bit for each hook that names no module and belongs to
					 * this module (bpf_hooks.c) */
};
struct record_modules {
	struct record_module **list;
	uint32_t nr;
	const struct record_options *options;
	struct record_ahead *ahead;	/* NULL: no analyses are made ahead */
	struct pb_datadir *datadir;	/* NULL: the data directory doesn't exist yet */
};
/* Returns the module of the file elf_fd. The first call analyses the file. On an error, returns
 * NULL and writes the reason to err. */
struct record_module *record_module_get(struct record_modules *m, int elf_fd, const char *path,
					char *err, size_t errlen);
/* Makes the module's file of stubs (src/abi/stubs.h), unless it exists. elf_fd is the module's
 * file, or -1. Returns 0 or -errno. */
int record_module_stubs(struct record_modules *m, struct record_module *e, int elf_fd);
/* Writes the modules that the data directory doesn't have yet. Must be called twice: when the data
 * directory has been made, and at the recording's end. Between the two calls, each module is
 * written when it is analysed. If that fails, for example because no descriptor is free, the second
 * call tries again. Returns 0 or -errno. */
int record_modules_write(struct record_modules *m, struct pb_datadir *w);
/* True if --module names the file. Notes in o->module_matched which patterns match. */
bool record_module_named(const struct record_options *o, const char *path);
/* True if the options select the module for tracing. is_exe: the module is the image's executable.
 * Notes in o->module_matched which patterns match the module. */
bool record_module_traced(const struct record_options *o, const struct record_module *m,
			  bool is_exe);
void record_modules_free(struct record_modules *m);
#endif
