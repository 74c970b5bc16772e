/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What people write for functions, turned into what the agent takes. The agent
 * matches globs against the names of the symbol table. Regular expressions,
 * plain text and demangled names are matched here, against the analyses, and
 * become exact names. Context: an observer's ordinary thread.
 */
#ifndef PB_CONTROL_RESOLVE_H
#define PB_CONTROL_RESOLVE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/analysis.h"

enum pb_match { PB_MATCH_GLOB, PB_MATCH_REGEX, PB_MATCH_SIMPLE };

/* "glob", "regex" or "simple"; false: none of them. */
bool pb_control_match_type(const char *text, enum pb_match *match);

struct pb_resolved {
	char *value;		/* for the control file; to be freed */
	bool listed;		/* it lists functions: the agent can't match the pattern itself */
	unsigned matched;	/* functions */
	unsigned usable;	/* of them, those that can be traced */
	int refused;		/* why one of the others can't: PB_REFUSED_* */
	bool module_known;	/* :mod: names one of the modules, or isn't there */
};

/* Calls fn for each function that the pattern means, as [module] and its index
 * there: how many, or -errno with a text in err. modules as below. */
int pb_control_match(const struct pb_analysis *const *modules, unsigned nr, enum pb_match match,
		     const char *pattern, void (*fn)(void *arg, unsigned module, uint32_t func),
		     void *arg, char *err, size_t errlen);

/* modules must have passed pb_analysis_check(). 0 (also if nothing matched), or
 * -errno with a text in err: a bad regular expression, out of memory. */
int pb_control_resolve(const struct pb_analysis *const *modules, unsigned nr,
		       enum pb_match match, const char *pattern, struct pb_resolved *out,
		       char *err, size_t errlen);

/* Up to three names like the pattern's, as "a, b or c"; "" if none is near. */
void pb_control_nearest_function(const struct pb_analysis *const *modules, unsigned nr,
				 const char *pattern, char *out, size_t len);

/* The same among names, one a line, as available_filter_functions has them. */
void pb_control_nearest_name(const char *names, const char *pattern, char *out, size_t len);

/* Edits (insert, delete, replace, swap neighbours) from a to b; more than max
 * counts as max + 1. Only for texts up to PB_EDIT_MAX bytes. */
#define PB_EDIT_MAX 128
unsigned pb_edit_distance(const char *a, const char *b, unsigned max);
#endif
