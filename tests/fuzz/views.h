/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes data directories, and reads them with every view. If a directory can't be written, the
 * process ends. */
#ifndef FUZZ_VIEWS_H
#define FUZZ_VIEWS_H
#include <stddef.h>
#include <stdint.h>

enum { FUZZ_CHUNKS, FUZZ_META, FUZZ_MODULE, FUZZ_NR_FILES };

struct fuzz_file {
	const uint8_t *data;
	size_t size;
};

/* Writes the files into a data directory, which is always the same directory. Returns its path. */
const char *fuzz_store(const struct fuzz_file files[FUZZ_NR_FILES]);
/* Opens the directory and runs all views, with and without filters. */
void fuzz_run_views(const char *dir);
/* Makes the files of a scenario (tests/unit/recordings/gen_scenarios.c). The caller frees their
 * data. */
void fuzz_scenario(const char *name, uint64_t n, struct fuzz_file files[FUZZ_NR_FILES]);
#endif
