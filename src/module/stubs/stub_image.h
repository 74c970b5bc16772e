/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the file of stubs (abi/stubs.h) of an analysis that pb_analysis_check() has accepted.
 * Context: any thread. */
#ifndef PB_MODULE_STUB_IMAGE_H
#define PB_MODULE_STUB_IMAGE_H
#include <stddef.h>
#include <stdint.h>
#include "abi/analysis.h"
#include "abi/stubs.h"
#include "module/elf/cfi.h"

/* Makes the file. cfi is the module's unwind table, or NULL if there is none. Returns 0, -ENOMEM or
 * -EFBIG. If the result is 0, the caller frees *file. */
int pb_stub_image(const struct pb_analysis *a, const struct pb_cfi *cfi, uint8_t **file,
		  size_t *size);
/* Returns the checksum of the file whose header is s. All s->size bytes must be readable. The field
 * s->sum counts as 0. */
uint64_t pb_stubs_sum(const struct pb_stubs *s);
#endif
