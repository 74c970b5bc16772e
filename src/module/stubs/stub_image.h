/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From an analysis that pb_analysis_check() has passed to the file of its stubs (abi/stubs.h).
 * Context: any thread. */
#ifndef PB_MODULE_STUB_IMAGE_H
#define PB_MODULE_STUB_IMAGE_H
#include <stddef.h>
#include <stdint.h>
#include "abi/analysis.h"
#include "abi/stubs.h"
#include "module/elf/cfi.h"

/* cfi: the module's unwind table; NULL: there is none. 0, -ENOMEM or -EFBIG. *file is to be freed. */
int pb_stub_image(const struct pb_analysis *a, const struct pb_cfi *cfi, uint8_t **file,
		  size_t *size);
/* Of s->size bytes, which are there; s->sum counts as 0. */
uint64_t pb_stubs_sum(const struct pb_stubs *s);
#endif
