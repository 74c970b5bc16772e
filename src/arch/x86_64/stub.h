/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Making a site's stub from its recipe (abi/analysis.h, arch/x86_64/layout.h).
 * Most stubs are made ahead, into a file that is kept (module/stub_image.c): a change of what is
 * written here raises STUBS_REVISION (module/cache.c).
 * Context: agent thread or start, the recorder; not on a hit. */
#ifndef PB_ARCH_STUB_H
#define PB_ARCH_STUB_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/analysis_place.h"
#include "arch/x86_64/layout.h"
#include "arch/x86_64/site.h"

/* The code that stands in for what a place displaces: its recipe's, with its exits
 * hooked, and behind it the second recipe's. Bytes of it; where the second begins. */
size_t pb_body_size(const struct pb_place *p);
unsigned pb_body_second(const struct pb_place *p);
/* Where begins what conditional exits lead to; all of it up to the second recipe's. */
unsigned pb_body_exits(const struct pb_place *p);
/* Writes to `out` what is to stand at `at`. words: where its exits go. -ERANGE if
 * something lies out of reach: nothing is to be used then. */
int pb_body_emit(uint8_t *out, uint64_t at, const struct pb_place *p,
		 const struct pb_returns *words, uint64_t bias);
/* The link-time address of the instruction that the code at this offset stands for.
 * *own: it stands in front of an exit, and -8(%rsp) holds r11. */
uint64_t pb_body_original(const struct pb_place *p, unsigned off, bool *own);
/* The offset of the copy of the instruction at a link-time address, or -1. */
int pb_body_copy(const struct pb_place *p, uint64_t addr);

/* Where the code in front of an exit that is no plain ret goes on: is that exit
 * a ret N? Any context. */
static inline bool pb_exit_pops(const void *from)
{
	const uint8_t *code = (const uint8_t *)from + PB_EXIT_RELOAD_LEN;

	return *code == 0xc2 || ((*code == 0xf2 || *code == 0xf3) && code[1] == 0xc2);
}

/* The stub of a site: bytes that it takes, a multiple of 16; the code, with the
 * body at PB_STUB_COPY. As pb_body_emit(). */
size_t pb_stub_size(const struct pb_place *p);
#define PB_STUB_MAX	704	/* no more than that */
int pb_stub_emit(uint8_t *out, uint64_t at, const struct pb_site *site, const struct pb_place *p,
		 const struct pb_returns *words, uint64_t bias);
/* The jump to put over the window at `from`. -ERANGE. */
int pb_jump_emit(uint8_t out[PB_JUMP_LEN], uint64_t from, uint64_t to);
/* The two jumps to put over a code slot at `from`, to the copy of what is displaced
 * there and to the stub. -ERANGE. */
int pb_code_slot_emit(uint8_t out[PB_CODE_SLOT_LEN], uint64_t from, uint64_t copy, uint64_t stub);
/* The jump to put over a window whose slot is `via` bytes behind it. */
void pb_jump_emit_short(uint8_t out[PB_JUMP_SHORT], int via);
/* The site of the stub at `at`, if one begins there (for finding the stub of a
 * PC); whether it does. */
const struct pb_site *pb_stub_site(const uint8_t *at);
int pb_stub_is(const uint8_t *at, const struct pb_site *site);
#endif
