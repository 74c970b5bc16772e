/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The analysis of a module: a pure function from an ELF64 x86-64 file (and the separate debug file
 * that belongs to it, for names only) to the format of abi/analysis.h. All bytes of the files are
 * untrusted until checked.
 *
 * Context: an ordinary thread of the observer; never the hit path or a signal handler, and never
 * with the loader's lock held. Takes no locks, keeps no state between calls, may be called by
 * several threads at once. For big files it starts and joins a thread of its own, in which all
 * signals are blocked.
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
 * Analyses the file of elf_fd; elf_fd's file offset is neither used nor moved. `path` is written to
 * the analysis, and a debug link is resolved relative to it. Returns a descriptor (close-on-exec,
 * read-only) of the analysis: the cached file, or a sealed memfd if nothing can be cached. The
 * analysis has passed pb_analysis_check().
 *
 * Errors: -ENOEXEC (the file is not an ELF64 x86-64 program or library, or is broken), -ENOMEM,
 * -EFBIG, -EIO, and the errors of read, memfd_create, ... err receives one line of text, without
 * path or full stop.
 */
int pb_module_open(int elf_fd, const char *path, const struct pb_module_options *o, char *err,
		   size_t errlen);

/* Like pb_module_open(), but returns -1 if the analysis is not in the cache. */
int pb_module_find(int elf_fd, const char *path, const struct pb_module_options *o);

/*
 * Like pb_module_open(), but returns a descriptor of the ELF file's file of stubs (abi/stubs.h), or
 * -errno. `a` is the analysis of the ELF file. If the file of stubs is cached, profilers find its
 * unwind tables by its path. Without the ELF file (elf_fd is -1) these tables have no rows for
 * displaced code.
 */
struct pb_analysis;
int pb_module_stubs(int elf_fd, const char *path, const struct pb_module_options *o,
		    const struct pb_analysis *a);

/* Makes the kernel read ahead the bytes of the file that its analysis will need, at most max bytes.
 * With code_only, reads ahead only the bytes that patching its text will need. Returns the number
 * of bytes, and does not wait for the disk. */
uint64_t pb_module_read_ahead(int elf_fd, bool code_only, uint64_t max);
#endif
