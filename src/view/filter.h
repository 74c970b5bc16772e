/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Patterns of the views. `patchbay record` has patterns of the same grammar and meaning
 * (control/resolve.h). Each pattern is looked up once in the functions of the recording.
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_FILTER_H
#define PB_VIEW_FILTER_H
#include "control/resolve.h"
#include "reader/data.h"

struct pb_filters;

#define PB_FILTER_IN	1	/* the function matches an -F */
#define PB_FILTER_OUT	2	/* the function matches an -N */
#define PB_FILTER_FOCUS	4	/* the view is about this function */

struct pb_filters *pb_filters_new(struct pb_data *d);
void pb_filters_free(struct pb_filters *f);
/* Marks the functions that match a pattern; "!PATTERN" removes the mark. If no function matches or
 * the pattern is malformed, returns -errno with a text in err. Else returns 0. */
int pb_filters_add(struct pb_filters *f, unsigned mark, enum pb_match match, const char *pattern,
		   char *err, size_t errlen);

/* Return the PB_FILTER_* of a function. pb_filters_match() takes the function's site;
 * pb_filters_number() takes the function's number (view/site_numbers.h). */
unsigned pb_filters_match(struct pb_filters *f, size_t image, uint32_t site);
unsigned pb_filters_number(const struct pb_filters *f, uint32_t number);
/* Returns whether the user gave an -F without "!". */
bool pb_filters_has_in(const struct pb_filters *f);
/* Returns whether the user gave an -F or -N. */
bool pb_filters_chooses(const struct pb_filters *f);
#endif
