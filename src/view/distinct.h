/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Displayed names leave out template arguments and parameters, so different functions
 * may look the same. If such functions are in one list, each name is lengthened until
 * it differs from the others: by inner lists of template arguments, then by parameters,
 * the module, and the address.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_DISTINCT_H
#define PB_VIEW_DISTINCT_H
#include "reader/site_names.h"

struct pb_distinct {
	char **made;		/* the texts that lengthened names point to */
	size_t nr;
};

/* Lengthens equal names of the list, and orders the list by name. No function may be in the list
 * twice. If memory is short, names stay as they are. */
void pb_distinct_names(struct pb_distinct *d, struct pb_data *data, struct pb_function **list,
		       size_t nr);
void pb_distinct_free(struct pb_distinct *d);

/* Like pb_distinct_names(), but for an array of nr functions, whose order stays. */
void pb_distinct_array(struct pb_distinct *d, struct pb_data *data, struct pb_function *functions,
		       size_t nr);
#endif
