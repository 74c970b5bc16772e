/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the modules of a program before it is traced. For a program that isn't started yet, these
 * are the executable and the libraries that it is linked with. For a process that runs already,
 * they are the executable and the libraries that it has loaded. Context: the main thread. */
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
/* Lists the executable, and the libraries too if `libraries` is set. A library that can't be
 * analysed is left out. The caller frees the list. If the executable can't be analysed, or if
 * memory is short, prints one line and returns NULL. */
struct record_known *record_known_modules(const struct record_target *t, struct record_modules *m,
					  bool libraries);
/* Returns the module of one file. On an error, returns NULL and writes the reason to err. */
const struct record_module *record_known_file(struct record_modules *m, const char *path, char *err,
					      size_t errlen);
#endif
