/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns what users write for functions into what the agent takes. The agent
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

/* Reads "glob", "regex" or "simple"; false: it is none of them. */
bool pb_control_match_type(const char *text, enum pb_match *match);

struct pb_resolved {
	char *value;		/* for the control file; to be freed */
	bool listed;		/* `value` lists functions, as the agent can't match the pattern
				 * itself */
	unsigned matched;	/* number of functions that match */
	unsigned usable;	/* number of these functions that can be traced */
	int refused;		/* why one of the other functions can't be traced: PB_REFUSED_* */
	bool module_known;	/* :mod: matches one of the modules, or there is no :mod: */
};

/* Calls fn for each function that the pattern means, with the module's index and the function's
 * index in it. Returns the number of functions, or -errno with a text in err. modules: as for
 * pb_control_resolve(). */
int pb_control_match(const struct pb_analysis *const *modules, unsigned nr, enum pb_match match,
		     const char *pattern, void (*fn)(void *arg, unsigned module, uint32_t func),
		     void *arg, char *err, size_t errlen);

/* Resolves a pattern. modules must have passed pb_analysis_check(). Returns 0 (also if nothing
 * matched), or -errno with a text in err: a bad regular expression, out of memory. */
int pb_control_resolve(const struct pb_analysis *const *modules, unsigned nr,
		       enum pb_match match, const char *pattern, struct pb_resolved *out,
		       char *err, size_t errlen);

/* Writes up to three names of functions that are like the pattern, as "a, b or c"; "" if none
 * is. */
void pb_control_nearest_function(const struct pb_analysis *const *modules, unsigned nr,
				 const char *pattern, char *out, size_t len);

/* Like pb_control_nearest_function(), but takes the names from a text with one name on each line,
 * such as available_filter_functions. */
void pb_control_nearest_name(const char *names, const char *pattern, char *out, size_t len);

/* The number of edits (insert, delete, replace, swap neighbours) from a to b; max + 1: more than
 * max, or a text is longer than PB_EDIT_MAX bytes. */
#define PB_EDIT_MAX 128
unsigned pb_edit_distance(const char *a, const char *b, unsigned max);
#endif
