/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Marks landing pads as jump targets, because an exception enters a function in its middle at a
 * landing pad. The personality routines of all compilers (C++, C's cleanups, Rust, Ada, ...) share
 * one format of table. If the bytes are not such a table, at worst a function is refused. Source of
 * the format: gcc's unwind-c++ (libsupc++/eh_personality.cc), and the Itanium C++ ABI, "Exception
 * Handling Tables".
 */
#include "module/elf/dwarf_bytes.h"
#include "module/analysis/stages.h"

#define MAX_TABLE (1u << 20)	/* in bytes; a row for a range of calls usually has 4 to 16 bytes */

/* Returns the number of bytes read. */
static uint64_t read_table(struct pb_an *an, const struct pb_fde *f, const uint8_t *p,
			   uint64_t len)
{
	struct bytes b = { p, p + len, false };
	uint64_t pads = f->start, size;
	uint8_t encoding = (uint8_t)fixed(&b, 1);

	if (encoding != PE_OMIT)
		pads = encoded(&b, encoding, f->lsda + 1);
	if (fixed(&b, 1) != PE_OMIT)
		uleb(&b);	/* offset of the table of types */
	encoding = (uint8_t)fixed(&b, 1);
	size = uleb(&b);
	if (encoding & 0x70 || size > (uint64_t)(b.end - b.p))
		return (uint64_t)(b.p - p);
	b.end = b.p + size;
	while (b.p < b.end && !b.dry) {
		uint64_t pad;

		encoded(&b, encoding, 0);	/* start of a range of calls */
		encoded(&b, encoding, 0);	/* length of the range */
		pad = encoded(&b, encoding, 0);
		uleb(&b);			/* the action: which types the pad catches */
		if (pad && !b.dry)
			pb_mark(an, pads + pad, false);
	}
	return (uint64_t)(b.p - p);
}

int pb_lsda_read(struct pb_an *an, const char **why)
{
	uint64_t left = an->elf.size;	/* bytes that may still be read: tables don't overlap, so
					 * all tables together are not longer than the file */

	(void)why;
	for (size_t i = 0; i < an->cfi.fdes.n && left; i++) {
		const struct pb_fde *f = &an->cfi.fdes.v[i];
		uint64_t len = f->lsda ? pb_elf_room(&an->elf, f->lsda) : 0, read;
		const uint8_t *p;

		if (len > MAX_TABLE)
			len = MAX_TABLE;
		p = len ? pb_elf_at(&an->elf, f->lsda, len) : NULL;
		read = p ? read_table(an, f, p, len) : 0;
		left -= read < left ? read : left;
	}
	return 0;
}
