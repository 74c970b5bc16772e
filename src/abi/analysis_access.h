/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Accessors of an analysis. The analysis must have passed pb_analysis_check().
 *
 * Context: any (no libc, no allocation, no SSE). These functions don't check the analysis again.
 */
#ifndef PB_ABI_ANALYSIS_ACCESS_H
#define PB_ABI_ANALYSIS_ACCESS_H
#include "abi/analysis.h"

static inline const struct pb_func *pb_analysis_funcs(const struct pb_analysis *a)
{
	return (const struct pb_func *)((const char *)a + a->funcs_offset);
}

static inline const struct pb_nop *pb_analysis_nops(const struct pb_analysis *a)
{
	return (const struct pb_nop *)((const char *)a + a->nops_offset);
}

/* Returns the string at an offset. Offset 0 is "". */
static inline const char *pb_analysis_string(const struct pb_analysis *a, uint32_t offset)
{
	return (const char *)a + a->strings_offset + offset;
}

static inline const char *pb_func_name(const struct pb_analysis *a, const struct pb_func *f)
{
	return pb_analysis_string(a, f->name);
}

/* Returns the index of the last function that begins at or before addr, or -1. */
static inline int64_t pb_analysis_lower(const struct pb_analysis *a, uint64_t addr)
{
	const struct pb_func *f = pb_analysis_funcs(a);
	uint32_t low = 0, high = a->nr_funcs;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (f[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return (int64_t)low - 1;
}

/* Returns the function whose bytes include the link-time address, or NULL. A function of unknown
 * size reaches to the next function. */
static inline const struct pb_func *pb_analysis_find(const struct pb_analysis *a, uint64_t addr)
{
	int64_t i = pb_analysis_lower(a, addr);
	const struct pb_func *f = pb_analysis_funcs(a) + i;

	if (i < 0 || (f->size && addr - f->addr >= f->size))
		return 0;
	return f;
}

/* Returns the function that starts at addr, or NULL. */
static inline const struct pb_func *pb_analysis_at(const struct pb_analysis *a, uint64_t addr)
{
	int64_t i = pb_analysis_lower(a, addr);
	const struct pb_func *f = pb_analysis_funcs(a) + i;

	return i >= 0 && f->addr == addr ? f : 0;
}

/* Returns the link-time address of the first displaced byte. */
static inline uint64_t pb_func_window(const struct pb_func *f)
{
	return f->addr + f->window;
}

/* Returns the link-time address of the first byte after the displaced bytes. */
static inline uint64_t pb_func_window_end(const struct pb_func *f)
{
	return f->addr + f->window + f->window_len;
}

/* Returns the size of the jump in the window. */
static inline unsigned pb_func_jump_len(const struct pb_func *f)
{
	if (f->flags & PB_FUNC_SHARES)
		return PB_JUMP_SHARED;
	return f->via ? PB_JUMP_SHORT : PB_JUMP_LEN;
}

/* Whether this function has the second of two shared jumps. The function before it has the first
 * jump. */
static inline int pb_func_is_second(const struct pb_analysis *a, const struct pb_func *f)
{
	return f > pb_analysis_funcs(a) && f[-1].flags & PB_FUNC_SHARES;
}

/* Returns the link-time address of the slot. Only for a function whose via isn't 0. */
static inline uint64_t pb_func_slot(const struct pb_func *f)
{
	return pb_func_window(f) + (uint64_t)(int64_t)f->via;
}

/* Returns the link-time address of the code that the slot displaces. Only for a function with
 * PB_FUNC_CODE_SLOT. */
static inline uint64_t pb_func_code_slot(const struct pb_func *f)
{
	return pb_func_slot(f) - PB_JUMP_LEN;
}

/* Returns the recipe of the function's window. Only for a function with PB_REFUSED_NOT. */
static inline const struct pb_recipe *pb_func_recipe(const struct pb_analysis *a,
						     const struct pb_func *f)
{
	return (const struct pb_recipe *)((const char *)a + a->recipes_offset + f->recipe);
}

static inline const struct pb_fixup *pb_recipe_fixups(const struct pb_recipe *r)
{
	return (const struct pb_fixup *)(r + 1);
}

static inline const struct pb_pair *pb_recipe_pairs(const struct pb_recipe *r)
{
	return (const struct pb_pair *)(pb_recipe_fixups(r) + r->nr_fixups);
}

static inline const uint8_t *pb_recipe_code(const struct pb_recipe *r)
{
	return (const uint8_t *)(pb_recipe_pairs(r) + r->nr_pairs);
}

static inline const uint8_t *pb_recipe_orig(const struct pb_recipe *r)
{
	return pb_recipe_code(r) + r->len;
}

static inline const uint8_t *pb_recipe_rest(const struct pb_recipe *r)
{
	return pb_recipe_orig(r) + r->window_len;
}

/* Returns the size of the recipe in the file. The bytes that a slot adds after the recipe don't
 * count. */
static inline uint32_t pb_recipe_size(const struct pb_recipe *r)
{
	return sizeof(*r) + r->nr_fixups * sizeof(struct pb_fixup) +
	       r->nr_pairs * sizeof(struct pb_pair) + r->len + 2u * r->window_len;
}

/* Returns the offset from the recipe to the bytes that a slot adds after it. */
static inline uint32_t pb_recipe_padded_size(const struct pb_recipe *r)
{
	return (pb_recipe_size(r) + 7u) & ~7u;
}

/* Returns the PB_JUMP_LEN bytes that the file has in the slot. Only if via isn't 0, and without
 * PB_FUNC_CODE_SLOT. */
static inline const uint8_t *pb_recipe_slot(const struct pb_recipe *r)
{
	return (const uint8_t *)r + pb_recipe_padded_size(r);
}

/* Returns the recipe of the code that the slot displaces, or NULL. */
static inline const struct pb_recipe *pb_func_code_recipe(const struct pb_analysis *a,
							  const struct pb_func *f)
{
	const struct pb_recipe *r = pb_func_recipe(a, f);

	if (!(f->flags & PB_FUNC_CODE_SLOT))
		return 0;
	return (const struct pb_recipe *)((const char *)r + pb_recipe_padded_size(r));
}

/* Returns the index of the pair to which a PC at code + offset belongs. */
static inline unsigned pb_recipe_pair(const struct pb_recipe *r, uint8_t offset)
{
	const struct pb_pair *p = pb_recipe_pairs(r);
	unsigned i = r->nr_pairs - 1;

	while (i && p[i].copy > offset)
		i--;
	return i;
}

/* Finds the original instruction for a PC at code + offset. Returns the instruction's offset from
 * the window's start. For a PC at the jump that ends the recipe, returns the offset of the first
 * instruction after the window. */
static inline uint8_t pb_recipe_orig_offset(const struct pb_recipe *r, uint8_t offset)
{
	return pb_recipe_pairs(r)[pb_recipe_pair(r, offset)].orig;
}

/* Finds the copy of the instruction at window + offset. Returns the copy's offset in the recipe's
 * code. If no displaced instruction starts at window + offset, returns -1. */
static inline int pb_recipe_copy_offset(const struct pb_recipe *r, uint8_t offset)
{
	const struct pb_pair *p = pb_recipe_pairs(r);

	for (unsigned i = 0; i < r->nr_pairs; i++)
		if (p[i].orig == offset && offset < r->window_len)
			return p[i].copy;
	return -1;
}

/* Returns the function whose slot is at an address in (from, to], or NULL. from and to are
 * link-time addresses, at most PB_CODE_SLOT_LEN apart. */
static inline const struct pb_func *pb_analysis_slot_in(const struct pb_analysis *a, uint64_t from,
							uint64_t to)
{
	const struct pb_func *f = pb_analysis_funcs(a);

	for (int64_t i = pb_analysis_lower(a, to + PB_SLOT_REACH); i >= 0; i--) {
		if (f[i].addr + PB_SLOT_REACH < to)
			return 0;
		if (f[i].via && pb_func_slot(&f[i]) - from - 1 < to - from)
			return &f[i];
	}
	return 0;
}

/* Returns the function whose slot is at this link-time address, or NULL. */
static inline const struct pb_func *pb_analysis_slot_at(const struct pb_analysis *a, uint64_t addr)
{
	return pb_analysis_slot_in(a, addr - 1, addr);
}

/* ---- exits: only with PB_AN_RETURNS ---------------------------------------- */

static inline const struct pb_exit_window *pb_analysis_windows(const struct pb_analysis *a)
{
	return (const struct pb_exit_window *)((const char *)a + a->windows_offset);
}

static inline const struct pb_window_exit *pb_window_exits(const struct pb_analysis *a,
						    const struct pb_exit_window *w)
{
	return (const struct pb_window_exit *)((const char *)a + a->exits_offset) + w->first;
}

/* Returns why the function's exits aren't hooked, as an enum pb_inexit. */
static inline uint8_t pb_func_inexit(const struct pb_analysis *a, const struct pb_func *f)
{
	return ((const uint8_t *)a + a->inexits_offset)[f - pb_analysis_funcs(a)];
}

/* Whether all exits of the function are known and lie in windows. */
static inline int pb_func_returns(const struct pb_analysis *a, const struct pb_func *f)
{
	return a->flags & PB_AN_RETURNS && pb_func_inexit(a, f) == PB_INEXIT_NOT;
}

/* Returns the indices of the windows that hold the function's exits. *nr is the number of these
 * windows. It is 0 if the function has no exit, or if the function isn't complete, that is, if
 * pb_func_inexit() isn't PB_INEXIT_NOT. */
static inline const uint32_t *pb_func_left_by(const struct pb_analysis *a, const struct pb_func *f,
					      uint32_t *nr)
{
	const uint32_t *leaves = (const uint32_t *)((const char *)a + a->leaves_offset) +
				 (f - pb_analysis_funcs(a));

	*nr = leaves[1] - leaves[0];
	return (const uint32_t *)((const char *)a + a->left_by_offset) + leaves[0];
}

/* If w is the window of a function's entry, returns the function; else NULL. */
static inline const struct pb_func *pb_window_func(const struct pb_analysis *a,
						   const struct pb_exit_window *w)
{
	return w->how == PB_EXIT_ENTRY ? pb_analysis_funcs(a) + w->recipe : 0;
}

static inline const struct pb_recipe *pb_window_recipe(const struct pb_analysis *a,
						       const struct pb_exit_window *w)
{
	if (w->how == PB_EXIT_ENTRY)
		return pb_func_recipe(a, pb_window_func(a, w));
	return (const struct pb_recipe *)((const char *)a + a->recipes_offset + w->recipe);
}

/* Returns the second recipe of a window, or NULL. Only CODE_SLOT and SHARED windows have a second
 * recipe. It is the recipe of the code that the code slot, or the second shared jump, displaces. */
static inline const struct pb_recipe *pb_window_second(const struct pb_analysis *a,
						       const struct pb_exit_window *w)
{
	const struct pb_recipe *r = pb_window_recipe(a, w);

	if (w->how != PB_EXIT_CODE_SLOT && w->how != PB_EXIT_SHARED)
		return 0;
	return (const struct pb_recipe *)((const char *)r + pb_recipe_padded_size(r));
}

/* If the window has the first of two shared jumps, and a function's entry has the second, returns
 * the function; else NULL. */
static inline const struct pb_func *pb_window_next(const struct pb_analysis *a,
						   const struct pb_exit_window *w)
{
	return w->how == PB_EXIT_NEXT ? pb_analysis_at(a, w->start + PB_JUMP_SHARED) : 0;
}

/* If w has the first of two shared jumps, and another window has the second, returns the other
 * window; else NULL. */
static inline const struct pb_exit_window *pb_window_shared_second(const struct pb_analysis *a,
								   const struct pb_exit_window *w)
{
	const struct pb_exit_window *next = w + 1;

	if (w->how != PB_EXIT_NEXT || pb_window_next(a, w) ||
	    next == pb_analysis_windows(a) + a->nr_windows || next->start != w->start +
	    PB_JUMP_SHARED || (next->how != PB_EXIT_WINDOW && next->how != PB_EXIT_PADDED))
		return 0;
	return next;
}

/* If w has the second of two shared jumps, and another window has the first, returns the other
 * window; else NULL. */
static inline const struct pb_exit_window *pb_window_shared_first(const struct pb_analysis *a,
								  const struct pb_exit_window *w)
{
	return w > pb_analysis_windows(a) && pb_window_shared_second(a, w - 1) == w ? w - 1 : 0;
}

/* Returns the link-time address of the window's slot. Only for a window whose via isn't 0. */
static inline uint64_t pb_window_slot(const struct pb_exit_window *w)
{
	return w->start + (uint64_t)(int64_t)w->via;
}

/* Whether fixup f sets the jump target in the copy of exit e. e must be a conditional exit. */
static inline int pb_exit_target(const struct pb_recipe *r, const struct pb_window_exit *e,
				 const struct pb_fixup *f)
{
	const struct pb_pair *p = pb_recipe_pairs(r);
	unsigned i = 0;

	while (i + 1u < r->nr_pairs && p[i].orig != e->off)
		i++;
	return f->kind == PB_FIX_REL32 && !f->addend && f->off >= p[i].copy &&
	       i + 1u < r->nr_pairs && f->off + 4u <= p[i + 1].copy;
}

/* Returns the index of the last window that starts at or before addr, or -1. */
static inline int64_t pb_window_lower(const struct pb_analysis *a, uint64_t addr)
{
	const struct pb_exit_window *w = pb_analysis_windows(a);
	uint32_t low = 0, high = a->nr_windows;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (w[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return (int64_t)low - 1;
}

/* Like pb_analysis_slot_in(), but finds a window of exits by its slot. Ignores ENTRY windows. */
static inline const struct pb_exit_window *pb_window_slot_in(const struct pb_analysis *a,
							     uint64_t from, uint64_t to)
{
	const struct pb_exit_window *w = pb_analysis_windows(a);

	for (int64_t i = pb_window_lower(a, to + PB_SLOT_REACH); i >= 0; i--) {
		if (w[i].start + PB_SLOT_REACH < to)
			return 0;
		if (w[i].via && pb_window_slot(&w[i]) - from - 1 < to - from)
			return &w[i];
	}
	return 0;
}

/* If a window of exits is also the window of the function's entry, returns this window; else
 * NULL. */
static inline const struct pb_exit_window *pb_func_exits(const struct pb_analysis *a,
							 const struct pb_func *f)
{
	if (!(f->flags & PB_FUNC_EXITS))
		return 0;
	return pb_analysis_windows(a) + pb_window_lower(a, pb_func_window(f));
}

/* If the function's entry has the second of two shared jumps, and a window of exits has the first,
 * returns the window; else NULL. */
static inline const struct pb_exit_window *pb_func_before(const struct pb_analysis *a,
							  const struct pb_func *f)
{
	int64_t i = pb_window_lower(a, f->addr - 1);
	const struct pb_exit_window *w = pb_analysis_windows(a) + i;

	return i >= 0 && w->start == f->addr - 1 && w->how == PB_EXIT_NEXT ? w : 0;
}

/* Returns the nop with which the agent replaces a call that the table of nops lists. The analysis
 * uses the same bytes in rest[]. */
static inline const uint8_t *pb_nop_bytes(uint8_t len)
{
	static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	static const uint8_t nop6[] = { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 };

	return len == 5 ? nop5 : nop6;
}
#endif
