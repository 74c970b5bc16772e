/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Patterns that the recorder matches for the agents. Context: the main thread. */
#ifndef PB_RECORDER_MARKS_H
#define PB_RECORDER_MARKS_H
#include "control/resolve.h"

struct record_module;
struct record_options;

/* A pattern that the recorder matches for the agents. */
struct record_mark {
	enum pb_match match;
	char *pattern;			/* without ! */
	const char *module;		/* the pattern's text after :mod:, or NULL; `pattern` ends
					 * before :mod: */
	char text[192];			/* stands for the pattern in control files: "=ns::*" */
};

/* Adds a pattern. Returns the word that stands for it in a control file of functions, with its
 * ! and :mod:; the caller frees it. NULL: no memory, or too many patterns (errno is E2BIG). */
char *record_marks_add(struct record_options *o, enum pb_match match, const char *pattern);
/* If a pattern matches any of the module's functions, makes the analysis that agents get. Returns 0
 * or -errno. */
int record_marks_apply(const struct record_options *o, struct record_module *m);
void record_marks_free(struct record_options *o);
#endif
