/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds all names of a function, and writes names as patterns. Used only inside src/control. */
#ifndef PB_CONTROL_FUNCTION_NAMES_H
#define PB_CONTROL_FUNCTION_NAMES_H
#include <stdbool.h>
#include <stdio.h>
#include "abi/analysis.h"

enum pb_name_kind {
	PB_NAME_RAW,		/* a name from the symbol table, or an alias */
	PB_NAME_SHORT,		/* a demangled name without parameters. fn gets it twice: with long
				 * lists of template arguments in full, and with these lists
				 * shortened to "<...>", as views show them */
	PB_NAME_DEMANGLED,	/* a demangled name with parameters */
};

/* Calls fn for each name of the function. If fn returns a nonzero value, stops and returns this
 * value. Names are demangled only if `demangle` is true, since demangling takes microseconds for
 * each name. */
int pb_names_each(const struct pb_analysis *a, const struct pb_func *f, bool demangle,
		  int (*fn)(void *arg, const char *name, enum pb_name_kind kind), void *arg);
/* Writes a word that matches only this name, and then a blank. `prefix` is "" or "!". `module` is a
 * glob for :mod:, or NULL. Puts a backslash before each character that the agent would take for a
 * wildcard. */
void pb_names_put_exact(FILE *f, const char *name, const char *prefix, const char *module);
/* In a glob, replaces "<...>" by "<*>". Views show long lists of template arguments as "<...>". So
 * a name that a user has copied from a view matches its function. */
void pb_names_open_lists(char *text);
#endif
