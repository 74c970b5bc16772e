/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A table of what abi/entries.h says about each type of EXT record. The index is the type's number.
 * The decoder, counts.c and open_chunks.c use the table. The rows of unknown types are all zero,
 * and records of unknown types are skipped.
 */
#ifndef PB_READER_RECORD_TABLE_H
#define PB_READER_RECORD_TABLE_H
#include <stdint.h>
#include "abi/record.h"

enum pb_ext_event { PB_EXT_EVENT_NOTHING, PB_EXT_EVENT_EVENT, PB_EXT_EVENT_AFTER_GAP };
enum pb_ext_count { PB_EXT_COUNT_NOTHING, PB_EXT_COUNT_LEAF, PB_EXT_COUNT_END };
struct pb_ext_info {
	uint8_t words, has_time, event, count;
};
#define PB_X_INFO(name, nr, words, has_site, has_time, event, count, ...) \
	[nr] = { words, has_time, PB_EXT_EVENT_##event, PB_EXT_COUNT_##count },
#define PB_X_NOFIELD(...)
static const struct pb_ext_info pb_ext_infos[1 << PB_EXT_TYPE_BITS] = {
	PB_EXT_RECORDS(PB_X_INFO, PB_X_NOFIELD)
};
#undef PB_X_INFO
#undef PB_X_NOFIELD

static inline unsigned pb_ext_type_of(uint64_t word)
{
	return word >> PB_EXT_TYPE_SHIFT & ((1 << PB_EXT_TYPE_BITS) - 1);
}

/* Records have only the low bits of a time. Returns the time nearest to `last` whose low bits are
 * `low`. */
static inline uint64_t pb_time_near(uint64_t last, uint64_t low, unsigned bits)
{
	return last + (uint64_t)((int64_t)((low - last) << (64 - bits)) >> (64 - bits));
}

static inline unsigned pb_ext_len_of(uint64_t word)
{
	return word >> PB_EXT_LEN_SHIFT & ((1 << PB_EXT_LEN_BITS) - 1);
}
#endif
