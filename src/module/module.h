/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the analysis of a module, in the format of abi/analysis.h. The module is an ELF64 x86-64
 * file. The analysis depends only on this file, on the separate debug file that belongs to it
 * (which has further symbols), on the path and on the flags. All bytes of both files are untrusted
 * until they are checked.
 *
 * Context: an ordinary thread of the observer. Never the hit path or a signal handler, and never a
 * thread that holds the loader's lock. Several threads may call the functions at once: the
 * functions take no locks, and between calls they keep only atomic counters (cache.c). For a big
 * file, an analysis starts and joins a second thread, in which all signals are blocked.
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
 * Analyses the file of elf_fd. elf_fd's file offset is neither used nor moved. `path` is written to
 * the analysis, and a debug link is resolved relative to `path`. Returns a close-on-exec descriptor
 * of the analysis: a read-only descriptor of the cached file or, if the analysis can't be cached, a
 * descriptor of a sealed memfd. The analysis has passed pb_analysis_check().
 *
 * Errors: -ENOEXEC (the file is not an ELF64 x86-64 program or library, or is broken), -ENOMEM,
 * -EFBIG, -EINVAL (a defect of Patchbay), and the errors of fstat() and memfd_create(). On an
 * error, err gets one line of text without the path and without a full stop.
 */
int pb_module_open(int elf_fd, const char *path, const struct pb_module_options *o, char *err,
		   size_t errlen);

/* Like pb_module_open(), but returns -1 if the analysis is not in the cache. */
int pb_module_find(int elf_fd, const char *path, const struct pb_module_options *o);

/*
 * Like pb_module_open(), but returns a descriptor of the ELF file's file of stubs (abi/stubs.h), or
 * -errno. `a` is the analysis of the ELF file. A cached file of stubs has a path, by which
 * profilers find its unwind table. If elf_fd is -1, the file of stubs is not cached, and its unwind
 * table has no rows for displaced code.
 */
struct pb_analysis;
int pb_module_stubs(int elf_fd, const char *path, const struct pb_module_options *o,
		    const struct pb_analysis *a);

/* Makes the kernel read ahead the bytes of the file that its analysis will need, but at most max
 * bytes. If code_only is true, only the bytes that patching the file's text needs are read ahead.
 * Returns the number of bytes that the kernel was asked for. Does not wait for the disk. */
uint64_t pb_module_read_ahead(int elf_fd, bool code_only, uint64_t max);
#endif
