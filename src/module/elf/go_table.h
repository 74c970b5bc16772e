/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the table of functions that a Go program carries for its own tracebacks (.gopclntab).
 * Stripping a program leaves this table in place, because the program needs it. For a stripped Go
 * program, the table is the only source of functions, because Go's linker writes no unwind tables.
 */
#ifndef PB_MODULE_GO_TABLE_H
#define PB_MODULE_GO_TABLE_H
#include <stdbool.h>
#include <stdint.h>
#include "module/elf/elf_file.h"
#include "module/elf/vec.h"

#define PB_GO_PADDING	0xcc	/* the byte that Go's linker puts between functions */

struct pb_go_func {
	uint64_t start, end;	/* link-time addresses */
	const char *name;	/* lies in the file's bytes, ends with a NUL, may have any bytes */
	bool padded;		/* there may be padding before `end` */
};
typedef PB_VEC(struct pb_go_func) pb_go_vec;

/* Reads the file's table of Go functions. If `search` is true, also finds a table that has no
 * section of its own. The functions are sorted by address and don't overlap. If there is no usable
 * table, or no memory (out->failed), `out` has no functions. The caller frees `out`. The file is
 * not trusted. Context: one thread at a time. */
void pb_go_functions(struct pb_elf *e, bool search, pb_go_vec *out);
#endif
