/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens the ELF file that a process has mapped. By now the path may lead to another file, so the
 * file must have the build-id that is in the process's memory. Context: the injector's thread.
 */
#ifndef PB_ATTACH_MAPPED_FILE_H
#define PB_ATTACH_MAPPED_FILE_H
#include "attach/subject.h"
#include "module/elf/elf_file.h"

/* The end of a mapping's path if the file has been deleted. */
#define ATTACH_DELETED " (deleted)"

/* m: the first mapping of an image of the file. Returns a descriptor, or -errno: -ESTALE if the
 * file has no build-id, or another one. The caller closes e and the descriptor. */
int attach_mapped_open(const struct attach_subject *s, const struct record_map *m,
		       struct pb_elf *e);

/* A function to look up in a file's table of dynamic symbols. */
struct attach_wanted {
	const char *name;
	uint64_t *addr;
	uint64_t *size;		/* or NULL */
};

/* Sets *addr and *size of those of the n functions that the file defines. If a function has several
 * versions, the default version counts. base: the address at which the file's address 0 is mapped.
 * text: a function counts only if it begins in this range. */
void attach_find_functions(struct pb_elf *e, uint64_t base, const struct attach_range *text,
			   const struct attach_wanted *w, size_t n);
#endif
