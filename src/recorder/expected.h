/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the modules that the program will load, as far as its files show them. Context: the main
 * thread, before the program runs. */
#ifndef PB_RECORDER_EXPECTED_H
#define PB_RECORDER_EXPECTED_H
#include <stdbool.h>
#include <stddef.h>

#include "recorder/analyse_ahead.h"
#include "recorder/modules.h"

struct record_target;

struct record_known {
	struct record_module *list[RECORD_MAX_LIBRARIES + 1];	/* the executable first */
	unsigned nr;
};
/* Lists the executable and, if `libraries` is set, the libraries that it is linked with. The caller
 * frees the list. NULL after one line of error. */
struct record_known *record_known_modules(const struct record_target *t, struct record_modules *m,
					  bool libraries);
/* Returns the module of one file; NULL with a reason in err. */
const struct record_module *record_known_file(struct record_modules *m, const char *path, char *err,
					      size_t errlen);
#endif
