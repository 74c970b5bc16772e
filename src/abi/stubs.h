/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stubs of one module: an ELF file with their code, symbols and unwind tables. Made by
 * src/module in the observer from the module's analysis, kept beside it, and mapped
 * (MAP_PRIVATE) by every agent that patches the module; profilers read it by its path.
 *
 *   Elf64_Ehdr, program headers, section headers
 *   struct pb_stubs, at PB_STUBS_AT; the two tables that it names
 *   .text		on a page of its own
 *   .note.gnu.build-id, .eh_frame_hdr, .eh_frame, .symtab, .strtab, .shstrtab
 *
 * Addresses in the file are offsets in it. The agent's sites lie in memory right before it:
 *
 *   front bytes: struct pb_site[nr_funcs], struct pb_returns	the file
 *
 * The code is right as it stands where the file is mapped at bias + place, but for what has
 * absolute addresses (PB_FIX_ABS64, LO32, HI32), which hold link-time ones. A module at a fixed
 * address has no bias, and so nothing to be written.
 */
#ifndef PB_ABI_STUBS_H
#define PB_ABI_STUBS_H
#include <stdbool.h>
#include <stdint.h>
#include "abi/analysis.h"

#define PB_STUBS_MAGIC	0x3130425554534250ull	/* "PBSTUB01" */
#define PB_STUBS_AT	1024u
#define PB_STUBS_PAGE	4096u
#define PB_STUBS_NR_SECTIONS 8

/*
 * Its place: PB_STUBS_BELOW the image's start, from there up, where nothing is mapped mostly.
 * Images that lie close together have their stubs as far apart, so they don't meet. Above an image
 * that
 * lies so low that there is no room, at the far end of a rel32, as its heap grows there. Where the
 * place is taken the agent looks from the gap below the image on, where only the loader puts
 * things.
 */
#define PB_STUBS_REACH	0x7ff00000ul	/* of a rel32, with room for the ends */
#define PB_STUBS_BELOW	0x20000000ul
#define PB_STUBS_END	0x1000000ul
#define PB_STUBS_LOW	0x10000000ul
#define PB_STUBS_GAP	0x10000ul

/* The sections, in this order. */
enum { PB_STUBS_NONE, PB_STUBS_TEXT, PB_STUBS_NOTE, PB_STUBS_EH_HDR, PB_STUBS_EH_FRAME,
	PB_STUBS_SYMTAB,
       PB_STUBS_STRTAB, PB_STUBS_SHSTRTAB };

struct pb_stubs {
	uint64_t magic;
	uint64_t size;			/* of the file, a multiple of 8 */
	uint64_t sum;			/* pb_stubs_sum() of it, with 0 here */
	uint64_t place;
	uint64_t front;			/* whole pages */
	uint32_t text, text_size;	/* the file's offset, whole pages */
	/* of the analysis */
	uint8_t build_id[PB_BUILD_ID_MAX];
	uint64_t recipes_size;
	uint32_t nr_funcs, nr_windows;
	uint32_t funcs,
		windows;	/* the file's offsets of uint32_t[nr_funcs], [nr_windows]: where in
					 * .text the stub begins. Of functions: 0 is none. Windows'
					 * rise; one of an entry has none */
	uint32_t sections;		/* the file's offset of section headers */
	uint32_t pad;
};

/* The first byte of a stub that could not be made. */
#define PB_STUBS_BAD	0xcc

/* Were they made of this analysis? */
static inline bool pb_stubs_are_of(const struct pb_stubs *s, const struct pb_analysis *a)
{
	for (unsigned i = 0; i < PB_BUILD_ID_MAX; i++)
		if (s->build_id[i] != a->build_id[i])
			return false;
	return s->nr_funcs == a->nr_funcs && s->nr_windows == a->nr_windows &&
	       s->recipes_size == a->recipes_size;
}

/* A file of `size` bytes, whose header this is: are the code, tables and section headers that it
 * names in it? */
static inline bool pb_stubs_fit(const struct pb_stubs *s, uint64_t size)
{
	return s->magic == PB_STUBS_MAGIC && s->size == size && size < 1u << 31 &&
	       s->text % PB_STUBS_PAGE == 0 && s->text_size % PB_STUBS_PAGE == 0 && s->text_size &&
	       s->place % PB_STUBS_PAGE == 0 && s->front % PB_STUBS_PAGE == 0 &&
	       s->front < 1u << 31 && s->text >= PB_STUBS_AT + sizeof(*s) &&
	       (uint64_t)s->text + s->text_size <= size && s->funcs % 4 == 0 &&
	       s->funcs + 4ull * s->nr_funcs <= s->text && s->windows % 4 == 0 &&
	       s->windows + 4ull * s->nr_windows <= s->text && s->sections % 8 == 0 &&
	       s->sections <= PB_STUBS_AT - PB_STUBS_NR_SECTIONS * 64u;
}

static inline const uint32_t *pb_stubs_funcs(const struct pb_stubs *s)
{
	return (const uint32_t *)((const char *)s - PB_STUBS_AT + s->funcs);
}

static inline const uint32_t *pb_stubs_windows(const struct pb_stubs *s)
{
	return (const uint32_t *)((const char *)s - PB_STUBS_AT + s->windows);
}
#endif
