/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names as people read them leave out template arguments and parameters, so that
 * different functions may look the same. Where they stand in one list, each gets as
 * much of its name as tells it from the others: inner lists of template arguments,
 * then parameters, the module, the address.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_DISTINCT_H
#define PB_VIEW_DISTINCT_H
#include "reader/site_names.h"

struct pb_distinct {
	char **made;		/* texts, which the names point to */
	size_t nr;
};

/* Lengthens the names of list that are equal, and orders it. Each function may stand
 * there once only. Where memory is short names stay as they are. */
void pb_distinct_names(struct pb_distinct *d, struct pb_data *data, struct pb_function **list,
		       size_t nr);
void pb_distinct_free(struct pb_distinct *d);

/* The same for nr functions that stand one after the other. */
void pb_distinct_array(struct pb_distinct *d, struct pb_data *data, struct pb_function *functions,
		       size_t nr);
#endif
