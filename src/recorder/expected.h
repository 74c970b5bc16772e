/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the modules that the program will load, as far as this can be seen from files. Context: the
 * main thread, before the program runs. */
#ifndef PB_RECORDER_EXPECTED_H
#define PB_RECORDER_EXPECTED_H
#include <stdbool.h>
#include <stddef.h>

#include "recorder/analyse_ahead.h"
#include "recorder/modules.h"

struct record_target;

struct record_known {
	struct record_module *list[RECORD_MAX_LIBRARIES + 1];	/* the modules; the executable is
								 * the first */
	unsigned nr;
};
/* Lists the executable, and also the libraries that it is linked with if `libraries` is set. The
 * caller frees the list. On an error, prints one line and returns NULL. */
struct record_known *record_known_modules(const struct record_target *t, struct record_modules *m,
					  bool libraries);
/* Returns the module of one file. On an error, returns NULL and writes the reason to err. */
const struct record_module *record_known_file(struct record_modules *m, const char *path, char *err,
					      size_t errlen);
#endif
