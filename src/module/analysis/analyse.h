/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes a whole analysis: from an ELF file to the bytes of abi/analysis.h.
 *
 * Context: any thread; see module.h. Each function returns 0 or -errno. After an error, *why is one
 * line of text.
 */
#ifndef PB_MODULE_ANALYSE_H
#define PB_MODULE_ANALYSE_H
#include <stddef.h>
#include <stdint.h>
#include "module/analysis/flags.h"

struct pb_an;

/* Analyses the file fd. The caller frees *blob with free(). */
int pb_analyse(int fd, const char *path, unsigned flags, uint8_t **blob, size_t *size,
	       const char **why);
/* Like pb_analyse(), but for bytes in memory, and without debug files. `bytes` must come from
 * malloc(); this function frees it. */
int pb_analyse_memory(uint8_t *bytes, size_t len, const char *path, unsigned flags,
		      uint8_t **blob, size_t *size, const char **why);

/* For tests: runs all stages but emit, then calls `visit`. Makes no analysis. */
int pb_analyse_visit(int fd, const char *path, unsigned flags,
		     void (*visit)(struct pb_an *an, void *arg), void *arg, const char **why);
#endif
