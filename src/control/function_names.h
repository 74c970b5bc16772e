/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All names of a function. Used inside src/control only. */
#ifndef PB_CONTROL_FUNCTION_NAMES_H
#define PB_CONTROL_FUNCTION_NAMES_H
#include <stdbool.h>
#include "abi/analysis.h"

enum pb_name_kind {
	PB_NAME_RAW,		/* names in the symbol table, aliases too */
	PB_NAME_SHORT,		/* demangled, without parameters: in full, and as views show it */
	PB_NAME_DEMANGLED,	/* demangled, with parameters */
};

/* Calls fn for each name; stops at its first nonzero result and returns it. Demangling takes
 * microseconds for each name, so it is done only if `demangle`. */
int pb_names_each(const struct pb_analysis *a, const struct pb_func *f, bool demangle,
		  int (*fn)(void *arg, const char *name, enum pb_name_kind kind), void *arg);
#endif
