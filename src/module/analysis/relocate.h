/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes a window from the instructions that a jump is to replace. Also makes the window's recipe
 * (struct pb_recipe): the code that the stub runs in place of these instructions. The result
 * depends only on the bytes, on their address, and on what the caller knows of the code around the
 * bytes.
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
	const uint8_t *bytes;	/* the bytes of code, from the window's start */
	uint64_t addr;		/* the link-time address of bytes[0] */
	uint64_t avail;		/* the number of bytes that may be read */
	unsigned jump_len;	/* length of the jump that is to be written: PB_JUMP_LEN, ... */
	unsigned reach;		/* the window holds at least this many bytes of instructions */
	uint64_t room;		/* the number of bytes up to the next entry. If no entry follows,
				 * any number greater than avail */
	const struct pb_nop *nops; /* calls that become nops, sorted */
	size_t nr_nops;
};

struct pb_window_out {
	struct pb_recipe head;
	struct pb_fixup fixups[2 * PB_WINDOW_MAX];
	struct pb_pair pairs[PB_WINDOW_MAX + 1];
	uint8_t code[PB_RECIPE_MAX + 32];
	uint8_t orig[PB_WINDOW_MAX], rest[PB_WINDOW_MAX];
	bool all_nops;		/* the window's instructions have no effect */
	bool padded;		/* the window ends with padding that is never executed */
};

/*
 * Chooses the smallest window of whole instructions that holds a jump, and writes the window's
 * recipe. Returns PB_REFUSED_NOT or the reason: SHORT, CROSSES, DECODE, CALL, RELOCATE, TRAP or
 * BRANCH. BRANCH: a branch of the window leads into the window's middle, or an endbr64 is there.
 * The caller checks branches from other code.
 *
 * The recipe has one pair for each displaced instruction. Unless the last instruction is a call, a
 * ret or a jmp, a jump back ends the recipe. One more pair is for this jump: {window_len, offset}.
 * This pair stands for the first instruction after the window.
 */
enum pb_refused pb_window_make(const struct pb_window_in *in, struct pb_window_out *out);

/* Writes the window in the file's format, and returns the number of bytes. */
size_t pb_window_store(const struct pb_window_out *w, uint8_t *to);
#define PB_WINDOW_STORE_MAX (sizeof(struct pb_window_out))
#endif
