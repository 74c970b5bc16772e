/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pattern aliases, called marks. An agent can only match globs against the names of the symbol
 * table. If a pattern is of another kind (a regular expression, a glob for demangled names), the
 * recorder finds the functions that match, and gives each of them an alias: the pattern's mark. The
 * agent then looks for this alias. Context: the main thread.
 */
#ifndef PB_RECORDER_MARKS_H
#define PB_RECORDER_MARKS_H
#include "control/resolve.h"

struct record_module;
struct record_options;

/* A pattern that the recorder matches for the agents. */
struct record_mark {
	enum pb_match match;
	char *pattern;			/* the pattern, without a leading ! */
	const char *module;		/* the text of the pattern after :mod:, or NULL; `pattern`
					 * has the text before :mod: */
	char text[192];			/* the mark: the word for the pattern in control files,
					 * "=ns::*" */
};

/* Adds a pattern. Returns the word that replaces the pattern in a control file of functions, with
 * the pattern's ! and :mod:. The caller frees the word. Returns NULL if there is no memory, or if
 * there are too many patterns (errno is E2BIG). */
char *record_marks_add(struct record_options *o, enum pb_match match, const char *pattern);
/* If a pattern matches any function of the module, makes a copy of the analysis with marks. Agents
 * get this copy. Returns 0 or -errno. */
int record_marks_apply(const struct record_options *o, struct record_module *m);
void record_marks_free(struct record_options *o);
#endif
