/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All the names of a function. Inside src/control. */
#ifndef PB_CONTROL_FUNCTION_NAMES_H
#define PB_CONTROL_FUNCTION_NAMES_H
#include <stdbool.h>
#include "abi/analysis.h"

enum pb_name_kind {
	PB_NAME_RAW,		/* as in the symbol table; aliases too */
	PB_NAME_SHORT,		/* demangled, without parameters; and as views show it */
	PB_NAME_DEMANGLED,	/* with them */
};

/* Stops at the first nonzero result of fn and returns it. Demangling costs
 * microseconds a name: only where it is asked for. */
int pb_names_each(const struct pb_analysis *a, const struct pb_func *f, bool demangle,
		  int (*fn)(void *arg, const char *name, enum pb_name_kind kind), void *arg);
#endif
