/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of support.c that only the drivers use. */
#ifndef FUZZ_SUPPORT_H
#define FUZZ_SUPPORT_H
#include "driver.h"

struct fuzz_corpus {
	struct {
		uint8_t *data;
		size_t size;
	} *v;
	size_t n;
};
extern struct fuzz_corpus fuzz_corpus;	/* the seeds */

/* Fills fuzz_corpus with the files in tests/fuzz/found/NAME, and then with the seeds of
 * fuzz_seeds(). */
void fuzz_load_seeds(void);
void fuzz_write_seeds(const char *dir);
void fuzz_write_file(const char *path, const void *data, size_t size);
#endif
