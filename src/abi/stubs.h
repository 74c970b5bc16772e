/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stubs of one module: an ELF file with the code, symbols and unwind tables of all stubs. The
 * observer (src/module) makes the file from the module's analysis, and keeps it beside the
 * analysis. Every agent that patches the module maps the file (MAP_PRIVATE). Profilers read the
 * file by its path.
 *
 *   Elf64_Ehdr, program headers, section headers
 *   struct pb_stubs, at PB_STUBS_AT; the two tables that it names
 *   .text		on a page of its own
 *   .note.gnu.build-id, .eh_frame_hdr, .eh_frame, .symtab, .strtab, .shstrtab
 *
 * Addresses in the file are offsets in the file. In memory, data of the agent lies right before the
 * file. This data is called the front bytes:
 *
 *   struct pb_site[nr_funcs], struct pb_returns	the file
 *
 * If the file is mapped at bias + `place`, most of its code can run unchanged. Stubs with absolute
 * addresses (PB_FIX_ABS64, LO32, HI32) can't, since the file has link-time addresses. A module at a
 * fixed address has no bias, so all of its stubs can run unchanged.
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
 * The file is made for one address, `place`. If it is mapped there, the front bytes begin
 * PB_STUBS_BELOW bytes below the image's start. (Here, an image is the memory in which a module is
 * mapped.) Usually nothing else is mapped at these addresses. The stubs of all images are at the
 * same distance from their images, so they rarely overlap. (If they do, the agent searches for
 * another place.) An image at a low fixed address has no room for stubs below it. Its stubs are
 * above the image, as far away as a rel32 reaches, because the heap grows right above the image.
 *
 * If something else is mapped at `place`, the agent searches for a free place downwards, from
 * PB_STUBS_GAP bytes below the image, in steps of the size that it needs. There is usually room
 * there, because only the loader maps memory right below an image. A program that has run for long
 * may have filled this memory, so the agent then searches above the image, downwards from the end
 * of the reach. If the image is below PB_STUBS_LOW, the agent searches only above the image, from
 * PB_STUBS_END bytes before the end of the reach. At last the agent repeats its first search in
 * smaller steps.
 */
#define PB_STUBS_REACH	0x7ff00000ul	/* the reach of a rel32, minus 1 MiB as a reserve */
#define PB_STUBS_BELOW	0x20000000ul
#define PB_STUBS_END	0x1000000ul
#define PB_STUBS_LOW	0x10000000ul
#define PB_STUBS_GAP	0x10000ul

/* The sections, in the order of the section headers. */
enum { PB_STUBS_NONE, PB_STUBS_TEXT, PB_STUBS_NOTE, PB_STUBS_EH_HDR, PB_STUBS_EH_FRAME,
	PB_STUBS_SYMTAB,
       PB_STUBS_STRTAB, PB_STUBS_SHSTRTAB };

struct pb_stubs {
	uint64_t magic;
	uint64_t size;			/* size of the file, a multiple of 8 */
	uint64_t sum;			/* pb_stubs_sum() of the file, computed with sum = 0 */
	uint64_t place;			/* the link-time address that the file is made for */
	uint64_t front;			/* size of the front bytes, whole pages */
	uint32_t text, text_size;	/* offset of .text in the file, and the size of .text; each
					 * is a multiple of a page */
	/* copies from the analysis */
	uint8_t build_id[PB_BUILD_ID_MAX];
	uint64_t recipes_size;
	uint32_t nr_funcs, nr_windows;
	/* Both members are offsets of tables in the file: uint32_t[nr_funcs] and
	 * uint32_t[nr_windows]. Each element of a table is the offset of a stub in .text. In the
	 * first table, 0 means that the function has no stub. The values in the second table rise,
	 * for binary searches. A window of an entry has no stub of its own. Its value serves only
	 * these searches. */
	uint32_t funcs,
		windows;
	uint32_t sections;		/* offset of the section headers in the file */
	uint32_t pad;
};

/* The first byte of a stub that could not be made. */
#define PB_STUBS_BAD	0xcc

/* Whether the stubs were made from this analysis. */
static inline bool pb_stubs_are_of(const struct pb_stubs *s, const struct pb_analysis *a)
{
	for (unsigned i = 0; i < PB_BUILD_ID_MAX; i++)
		if (s->build_id[i] != a->build_id[i])
			return false;
	return s->nr_funcs == a->nr_funcs && s->nr_windows == a->nr_windows &&
	       s->recipes_size == a->recipes_size;
}

/* Whether the code, tables and section headers that s names lie inside a file of `size` bytes. */
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
