/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Making a site's stub from its recipe (abi/analysis.h, arch/x86_64/layout.h).
 * Context: agent thread or start; not on a hit. */
#ifndef PB_ARCH_STUB_H
#define PB_ARCH_STUB_H
#include <stddef.h>
#include <stdint.h>
#include "abi/analysis.h"
#include "arch/x86_64/site.h"

/* Bytes that the stub takes, a multiple of 16. dug: the recipe of what is dug
 * away for it, or NULL. */
size_t pb_stub_size(const struct pb_recipe *r, const struct pb_recipe *dug);
#define PB_STUB_MAX	352	/* no more than that */
/* Writes to `out` the stub that is to stand at `at`: at PB_STUB_COPY the recipe's
 * code, behind it the other one's. -ERANGE if something lies out of reach:
 * nothing is to be used then. */
int pb_stub_emit(uint8_t *out, uint64_t at, const struct pb_site *site, const struct pb_recipe *r,
		 const struct pb_recipe *dug, uint64_t bias);
/* The jump to put over the window at `from`. -ERANGE. */
int pb_jump_emit(uint8_t out[PB_JUMP_LEN], uint64_t from, uint64_t to);
/* The two jumps to put over a dig at `from`, to the copy of what is displaced
 * there and to the stub. -ERANGE. */
int pb_dig_emit(uint8_t out[PB_DIG_LEN], uint64_t from, uint64_t copy, uint64_t stub);
/* The jump to put over a window whose hole is `via` bytes behind it. */
void pb_jump_emit_short(uint8_t out[PB_JUMP_SHORT], int via);
/* The site of the stub at `at`, if one begins there (for finding the stub of a
 * PC); whether it does. */
const struct pb_site *pb_stub_site(const uint8_t *at);
int pb_stub_is(const uint8_t *at, const struct pb_site *site);
#endif
