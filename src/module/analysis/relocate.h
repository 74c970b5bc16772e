/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the first instructions of a function to its window and recipe. Pure:
 * sees bytes, their address, and what the caller knows of the surroundings.
 *
 * Context: any thread; no state.
 */
#ifndef PB_MODULE_RELOCATE_H
#define PB_MODULE_RELOCATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/analysis.h"

struct pb_window_in {
	const uint8_t *bytes;	/* at the window's start */
	uint64_t addr;		/* their link-time address */
	uint64_t avail;		/* bytes that may be read */
	unsigned jump_len;	/* what is to go in: PB_JUMP_LEN or PB_JUMP_SHORT */
	unsigned reach;		/* at least so many bytes of instructions, if that is more */
	uint64_t room;		/* bytes up to the next entry, or more than avail */
	const struct pb_nop *nops; /* calls that become nops, sorted */
	size_t nr_nops;
};

struct pb_window_out {
	struct pb_recipe head;
	struct pb_fixup fixups[2 * PB_WINDOW_MAX];
	struct pb_pair pairs[PB_WINDOW_MAX + 1];
	uint8_t code[PB_RECIPE_MAX + 32];
	uint8_t orig[PB_WINDOW_MAX], rest[PB_WINDOW_MAX];
	bool all_nops;		/* nothing of the window has an effect */
	bool padded;		/* padding that is never run is part of the window */
};

/*
 * Chooses the smallest window of whole instructions that holds a jump and
 * writes its recipe. Returns PB_REFUSED_NOT or why not: SHORT, CROSSES, DECODE,
 * CALL, RELOCATE, BRANCH (from the window itself; others the caller knows).
 *
 * Pairs: one for each displaced instruction, and a last one for the jump that
 * ends the recipe, {window_len, its offset}, which stands for the first
 * instruction after the window.
 */
enum pb_refused pb_window_make(const struct pb_window_in *in, struct pb_window_out *out);

/* The out parameter's bytes as they stand in the file; returns their number. */
size_t pb_window_store(const struct pb_window_out *w, uint8_t *to);
#define PB_WINDOW_STORE_MAX (sizeof(struct pb_window_out))
#endif
