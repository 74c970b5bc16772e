/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * -F and -N of the views: globs over function names (mangled, demangled, or
 * demangled without the parameters), asked once for each site.
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_FILTER_H
#define PB_VIEW_FILTER_H
#include "reader/symbols.h"
#include "reader/data.h"

struct pb_filters;

#define PB_FILTER_IN	1	/* matches an -F */
#define PB_FILTER_OUT	2	/* matches an -N */

struct pb_filters *pb_filters_new(struct pb_data *d, char **in, size_t nr_in, char **out,
				  size_t nr_out);
void pb_filters_free(struct pb_filters *f);
unsigned pb_filters_match(struct pb_filters *f, size_t image, uint32_t site);
bool pb_filters_has_in(const struct pb_filters *f);
#endif
