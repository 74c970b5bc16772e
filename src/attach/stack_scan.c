/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Scans a stack for return addresses (stack_scan.h). A word counts as a return address if it points
 * into the text of libc or of the loader, just after a call instruction. Other words that point
 * there are, for example, pointers to functions: each program has the address of the loader's exit
 * function on its stack.
 */
#include "attach/stack_scan.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCAN_MAX	(64u << 10)
#define BEFORE		7	/* size of the longest call instruction without a prefix */

enum call_kind { CALL_NONE, CALL_DIRECT, CALL_INDIRECT };

/* Returns the length of the instruction with the opcode ff and this second byte. 0: the instruction
 * isn't a call. */
static unsigned indirect_length(uint8_t modrm)
{
	unsigned mod = modrm >> 6, rm = modrm & 7;

	if ((modrm >> 3 & 7) != 2)
		return 0;
	if (mod == 3)
		return 2;
	return 2 + (rm == 4) + (mod == 1 ? 1 : mod == 2 || rm == 5 ? 4 : 0);
}

/* Returns the kind of the call instruction that ends at the address, or CALL_NONE. */
static enum call_kind call_before(const struct attach_subject *s, uint64_t addr)
{
	uint8_t code[BEFORE];

	if (attach_mem_read(s, addr - BEFORE, code, BEFORE))
		return CALL_NONE;
	if (code[BEFORE - 5] == 0xe8)
		return CALL_DIRECT;
	for (unsigned len = 2; len <= BEFORE; len++) {
		const uint8_t *at = code + BEFORE - len;

		if (at[0] == 0xff && indirect_length(at[1]) == len)
			return CALL_INDIRECT;
	}
	return CALL_NONE;
}

static unsigned look_at(const struct attach_subject *s, const struct attach_libc *l, uint64_t word)
{
	if (word == l->restore)
		return ATTACH_IN_HANDLER;
	if (attach_in(&l->loader, word))
		return call_before(s, word) != CALL_NONE ? ATTACH_IN_LOADER : 0;
	if (!attach_in(&l->text, word) || attach_in(&l->start_main, word) ||
	    call_before(s, word) != CALL_DIRECT)
		return 0;
	for (size_t i = 0; i < ATTACH_LOCKING; i++)
		if (attach_in(&l->locking[i], word))
			return ATTACH_IN_LIBC | ATTACH_IN_LOCKING;
	return ATTACH_IN_LIBC;
}

unsigned attach_stack_scan(const struct attach_subject *s, const struct attach_libc *l, uint64_t sp)
{
	const struct attach_map *m = attach_map_at(s, sp);
	uint64_t size = m && m->end - sp < SCAN_MAX ? m->end - sp : SCAN_MAX;
	uint64_t *words = malloc(SCAN_MAX);
	ssize_t n = words ? pread(s->mem, words, size & ~7ull, (off_t)sp) : -1;
	unsigned found = n <= 0 ? ATTACH_UNREADABLE : 0;

	for (ssize_t i = 0; i < n / 8; i++)
		found |= look_at(s, l, words[i]);
	free(words);
	return found;
}
