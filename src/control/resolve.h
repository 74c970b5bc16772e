/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns users' patterns for functions into patterns that the agent understands. The agent can only
 * match globs against the names of the symbol table. So the observer itself looks up regular
 * expressions, literal names (PB_MATCH_SIMPLE) and demangled names in the analyses. In place of
 * such a pattern, the agent gets the exact names of the matching functions.
 *
 * Context: an observer's ordinary thread.
 */
#ifndef PB_CONTROL_RESOLVE_H
#define PB_CONTROL_RESOLVE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/analysis.h"

enum pb_match { PB_MATCH_GLOB, PB_MATCH_REGEX, PB_MATCH_SIMPLE };

/* Reads "glob", "regex" or "simple". Returns false if the text is none of them. */
bool pb_control_match_type(const char *text, enum pb_match *match);

struct pb_resolved {
	char *value;		/* the value for the control file; the caller frees it */
	bool listed;		/* `value` lists functions in place of the pattern, since the agent
				 * can't match the pattern */
	unsigned matched;	/* count of functions that match */
	unsigned usable;	/* count of matching functions that can be traced */
	int refused;		/* if matching functions can't be traced: the reason for one of them
				 * (PB_REFUSED_*) */
	bool module_known;	/* :mod: matches one of the modules, or there is no :mod: */
};

/* Calls fn for each function that the pattern matches. `module` is the module's index, and `func`
 * the function's index in the module. Returns the count of functions, or -errno. After an error,
 * err has a text. The modules must have passed pb_analysis_check(). */
int pb_control_match(const struct pb_analysis *const *modules, unsigned nr, enum pb_match match,
		     const char *pattern, void (*fn)(void *arg, unsigned module, uint32_t func),
		     void *arg, char *err, size_t errlen);

/* Resolves a pattern. The modules must have passed pb_analysis_check(). Returns 0 even if nothing
 * matched. Returns -errno if a regular expression is malformed or memory is short. After an error,
 * err has a text. */
int pb_control_resolve(const struct pb_analysis *const *modules, unsigned nr,
		       enum pb_match match, const char *pattern, struct pb_resolved *out,
		       char *err, size_t errlen);

/* Writes up to three names of functions that are like the pattern, as "a, b or c". If there is no
 * such name, writes "". */
void pb_control_nearest_function(const struct pb_analysis *const *modules, unsigned nr,
				 const char *pattern, char *out, size_t len);

/* Like pb_control_nearest_function(), but takes the names from a text with one name on each line,
 * such as available_filter_functions. */
void pb_control_nearest_name(const char *names, const char *pattern, char *out, size_t len);

/* In a list of patterns, replaces each word that matches no name of the symbol table by the
 * functions whose demangled names it matches. `names` is as for pb_control_nearest_name(). Returns
 * the new list, which the caller frees, or NULL if no word was replaced. */
char *pb_control_by_demangled(const char *names, const char *value);

/* Returns the smallest number of edits that turn a into b. An edit inserts, deletes or replaces a
 * character, or swaps two neighbours. Returns max + 1 if the number is larger than max, or if a
 * text has more than PB_EDIT_MAX bytes. */
#define PB_EDIT_MAX 128
unsigned pb_edit_distance(const char *a, const char *b, unsigned max);
#endif
