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
	const char *module;		/* after its :mod:, which is cut off; or NULL */
	char text[192];			/* stands for the pattern in control files: "=ns::*" */
};

/* Adds a pattern. Returns the word that stands for it in a control file of functions, with its
 * ! and :mod:; the caller frees it. NULL: no memory, or too many patterns (errno is E2BIG). */
char *record_marks_add(struct record_options *o, enum pb_match match, const char *pattern);
/* Makes the module's analysis for agents if a pattern matches any of its functions; 0 or -errno. */
int record_marks_apply(const struct record_options *o, struct record_module *m);
void record_marks_free(struct record_options *o);
#endif
