/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes equal names in a list of functions differ. Displayed names leave out template arguments and
 * parameters, so the names of different functions may be equal. Each equal name is lengthened until
 * it differs from the others. First, lists of template arguments are added, outer lists before
 * inner lists. After that, the parameters are added, then the module, then the address.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_DISTINCT_H
#define PB_VIEW_DISTINCT_H
#include "reader/site_names.h"

struct pb_distinct {
	char **made;		/* the texts of the lengthened names */
	size_t nr;
};

/* Lengthens equal names in the list, and orders the list by name. The list must not have a function
 * twice. If memory is short, names stay as they are. */
void pb_distinct_names(struct pb_distinct *d, struct pb_data *data, struct pb_function **list,
		       size_t nr);
void pb_distinct_free(struct pb_distinct *d);

/* Does what pb_distinct_names() does, but for an array of nr functions. The array keeps its
 * order. */
void pb_distinct_array(struct pb_distinct *d, struct pb_data *data, struct pb_function *functions,
		       size_t nr);
#endif
