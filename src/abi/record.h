/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bit positions of the records that entries.h declares. Assembly code may include this file.
 * Context: any.
 */
#ifndef PB_ABI_RECORD_H
#define PB_ABI_RECORD_H

#define PB_TAG_MASK	3
#define PB_TAG_EXT	0
#define PB_TAG_LEAF	1
#define PB_TAG_ENTRY	2
#define PB_TAG_EXIT	3

#define PB_SITE_SHIFT	2	/* of LEAF, ENTRY and EXIT */
#define PB_SITE_BITS	20
#define PB_SITE_MASK	0xfffff
#define PB_MAX_SITES	(1 << PB_SITE_BITS)	/* site 0 is never used */

#define PB_TIME_SHIFT	22	/* ENTRY, EXIT */
#define PB_TIME_BITS	42
#define PB_DUR_SHIFT	22	/* LEAF */
#define PB_DUR_BITS	20
#define PB_LEAF_SHIFT	42
#define PB_LEAF_BITS	22

#define PB_EXT_TYPE_SHIFT 2
#define PB_EXT_TYPE_BITS  6
#define PB_EXT_LEN_SHIFT  8
#define PB_EXT_LEN_BITS	  8
#define PB_EXT_SITE_SHIFT 16
#define PB_EXT_TIME_SHIFT 36
#define PB_EXT_TIME_BITS  28

#ifndef __ASSEMBLER__
#include <stdint.h>
#include "abi/entries.h"

#define PB_X_NUMBER(name, nr, ...) PB_EXT_##name = (nr),
#define PB_X_WORDS(name, nr, words, ...) PB_EXT_##name##_WORDS = (words),
#define PB_X_NOFIELD(...)
enum pb_ext_type {
	PB_EXT_HOLE = 0, PB_EXT_RECORDS(PB_X_NUMBER, PB_X_NOFIELD)
	PB_NR_EXT_TYPES
};
enum pb_ext_words { PB_EXT_RECORDS(PB_X_WORDS, PB_X_NOFIELD) };
#undef PB_X_NUMBER
#undef PB_X_WORDS
#undef PB_X_NOFIELD

#define PB_END_ENTRY	(~0ull)	/* value of `start` in an END whose call has an ENTRY */

static inline uint64_t pb_ext_word(enum pb_ext_type type, unsigned words,
				   uint32_t site, uint64_t time)
{
	return (uint64_t)type << PB_EXT_TYPE_SHIFT |
	       (uint64_t)words << PB_EXT_LEN_SHIFT |
	       (uint64_t)site << PB_EXT_SITE_SHIFT | time << PB_EXT_TIME_SHIFT;
}

/* The first word of a record. The record's length is from entries.h. */
#define pb_ext_record(name, site, time) \
	pb_ext_word(PB_EXT_##name, PB_EXT_##name##_WORDS, site, time)

/* Makes the second word of a FUNC (an address) or a TAIL_LEAF (a duration). The hit path's assembly
 * code writes this word before the record's first word. If a signal handler jumps away between the
 * two stores, a reader finds only this word. Its type PB_EXT_ADDRESS shows the reader that no
 * record begins here. */
#define PB_EXT_ADDRESS_SHIFT 16
#define PB_EXT_ADDRESS_BITS  48
static inline uint64_t pb_ext_address(uint64_t address)
{
	return address << PB_EXT_ADDRESS_SHIFT |
	       pb_ext_word(PB_EXT_ADDRESS, PB_EXT_ADDRESS_WORDS, 0, 0);
}
#endif
#endif
