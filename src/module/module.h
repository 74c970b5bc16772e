/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The analysis of a module: a pure function from an ELF64 x86-64 file (and the
 * separate debug file that belongs to it, for names only) to the format of
 * abi/analysis.h. Everything read is hostile until checked.
 *
 * Context: an ordinary thread of the observer, or of the analysis library that
 * the agent loads for itself; never the hit path, a signal handler or the
 * loader's lock. Takes no locks, keeps no state between calls, may be called
 * by several threads at once; starts and joins one thread of its own for big
 * files (all signals blocked in it).
 */
#ifndef PB_MODULE_H
#define PB_MODULE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "module/analysis/flags.h"


struct pb_module_options {
	unsigned flags;			/* PB_MODULE_* */
	const char *cache_dir;		/* NULL: $XDG_CACHE_HOME/patchbay or ~/.cache/patchbay */
};

/*
 * Analyses the file after elf_fd (its offset is neither used nor moved); path
 * is recorded, and is where a debug link is looked for. Returns a descriptor
 * (close-on-exec, read-only) of the analysis: the cached file, or a sealed
 * memfd where nothing can be cached. It has passed pb_analysis_check().
 *
 * Errors: -ENOEXEC not an ELF64 x86-64 program or library, or a broken one;
 * -ENOMEM, -EFBIG, -EIO, and what read, memfd_create, ... return. err gets one
 * line without path and full stop.
 */
int pb_module_open(int elf_fd, const char *path, const struct pb_module_options *o, char *err,
		   size_t errlen);

/* The same where the analysis is in the cache already, else -1. */
int pb_module_find(int elf_fd, const char *path, const struct pb_module_options *o);

/*
 * The file of the stubs (abi/stubs.h) of that ELF file, whose analysis is `a`: cached or sealed
 * likewise, or -errno. A cached one has a path, by which profilers find its unwind tables.
 * Without the ELF file (-1) these have no rows of displaced code.
 */
struct pb_analysis;
int pb_module_stubs(int elf_fd, const char *path, const struct pb_module_options *o, const struct pb_analysis *a);

/* Has the disk begin to read what the analysis (or, with code_only, writing its
 * text) will read of the file; at most max bytes. Returns how many. Doesn't
 * wait for them. */
uint64_t pb_module_read_ahead(int elf_fd, bool code_only, uint64_t max);
#endif
