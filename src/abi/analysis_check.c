/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks the tables of an analysis: first the tables' bounds, then the order of their elements and
 * the references between elements.
 */
#include "abi/analysis_check.h"
#include <errno.h>
#include <stdbool.h>
#include "abi/analysis_access.h"

#define MAX_OFFSET	16	/* largest value of `window` (the distance from the function's
				 * address to its window) of a function with a slot; PB_SLOT_REACH
				 * relies on this limit */

#define CHECK(condition) do { if (!(condition)) return false; } while (0)

static bool table_ok(const struct pb_analysis *a, uint64_t offset, uint64_t nr, uint64_t item,
		     uint64_t align)
{
	return offset % align == 0 && offset >= sizeof(*a) && offset <= a->size &&
	       nr <= (a->size - offset) / item;
}

/* Without PB_AN_RETURNS the tables of exits must be absent. */
static bool exits_placed(const struct pb_analysis *a)
{
	if (!(a->flags & PB_AN_RETURNS))
		return !a->windows_offset && !a->exits_offset && !a->leaves_offset &&
		!a->left_by_offset &&
		       !a->inexits_offset && !a->nr_windows && !a->nr_exits && !a->nr_left_by;
	CHECK(table_ok(a, a->windows_offset, a->nr_windows, sizeof(struct pb_exit_window), 8));
	CHECK(table_ok(a, a->exits_offset, a->nr_exits, sizeof(struct pb_window_exit), 1));
	CHECK(table_ok(a, a->leaves_offset, a->nr_funcs + 1ull, sizeof(uint32_t), 4));
	CHECK(table_ok(a, a->left_by_offset, a->nr_left_by, sizeof(uint32_t), 4));
	return table_ok(a, a->inexits_offset, a->nr_funcs, 1, 1);
}

static bool header_ok(const struct pb_analysis *a, uint64_t size)
{
	CHECK(a->magic == PB_ANALYSIS_MAGIC && a->version == PB_ANALYSIS_VERSION);
	CHECK(a->size == size);
	CHECK(a->build_id_len <= PB_BUILD_ID_MAX);
	CHECK(a->nr_sites <= a->nr_funcs && a->nr_funcs - a->nr_sites == a->nr_refused);
	CHECK(table_ok(a, a->funcs_offset, a->nr_funcs, sizeof(struct pb_func), 8));
	CHECK(table_ok(a, a->nops_offset, a->nr_nops, sizeof(struct pb_nop), 8));
	CHECK(table_ok(a, a->recipes_offset, a->recipes_size, 1, 8));
	CHECK(table_ok(a, a->strings_offset, a->strings_size, 1, 1));
	CHECK(a->text_start <= a->text_end && a->image_start <= a->image_end);
	CHECK(a->data_start <= a->data_end);
	CHECK(a->data_start == a->data_end ||
	      (a->data_start >= a->image_start && a->data_end <= a->image_end));
	/* the table begins with "" and ends with a NUL, so there is a string at every offset */
	CHECK(a->strings_size && a->strings_size <= UINT32_MAX);
	CHECK(!*pb_analysis_string(a, 0));
	CHECK(!*pb_analysis_string(a, (uint32_t)(a->strings_size - 1)));
	CHECK(a->soname < a->strings_size && a->path < a->strings_size);
	return exits_placed(a);
}

static bool fixup_ok(const struct pb_recipe *r, const struct pb_fixup *f)
{
	unsigned width = f->kind == PB_FIX_ABS64 ? 8 : 4;

	return f->kind >= PB_FIX_REL32 && f->kind <= PB_FIX_HI32 &&
	       (unsigned)f->off + width + f->addend <= r->len;
}

/* `left` is the number of bytes from r to the end of the recipes. */
static bool recipe_ok(const struct pb_recipe *r, uint64_t left)
{
	CHECK(left >= sizeof(*r) && left >= pb_recipe_size(r));
	CHECK(r->len && r->len <= PB_RECIPE_MAX && r->nr_pairs && r->window_len <= PB_WINDOW_MAX);
	for (unsigned i = 0; i < r->nr_fixups; i++)
		CHECK(fixup_ok(r, &pb_recipe_fixups(r)[i]));

	const struct pb_pair *p = pb_recipe_pairs(r);

	CHECK(p[0].orig == 0 && p[0].copy == 0);
	for (unsigned i = 1; i < r->nr_pairs; i++) {
		CHECK(p[i].orig > p[i - 1].orig && p[i].orig <= r->window_len);
		CHECK(p[i].copy >= p[i - 1].copy && p[i].copy < r->len);
	}
	return true;
}

static bool code_slot_ok(const struct pb_recipe *r, uint64_t left)
{
	CHECK(recipe_ok(r, left) && r->window_len >= PB_CODE_SLOT_LEN);
	/* no displaced instruction may begin at the slot's address */
	return pb_recipe_copy_offset(r, PB_JUMP_LEN) < 0;
}

static bool recipes_ok(const struct pb_analysis *a, const struct pb_func *f)
{
	const struct pb_recipe *r;
	uint64_t left = a->recipes_size - f->recipe;

	CHECK(f->recipe % 8 == 0 && f->recipe <= a->recipes_size);
	r = pb_func_recipe(a, f);
	CHECK(recipe_ok(r, left) && r->window_len == f->window_len);
	if (!f->via)
		return !(f->flags & PB_FUNC_CODE_SLOT);
	CHECK(left >= pb_recipe_padded_size(r));
	left -= pb_recipe_padded_size(r);
	return f->flags & PB_FUNC_CODE_SLOT ? code_slot_ok(pb_func_code_recipe(a, f), left) :
	       left >= PB_JUMP_LEN;
}

static bool func_ok(const struct pb_analysis *a, const struct pb_func *f)
{
	CHECK(f->addr >= a->text_start && f->addr < a->text_end);
	CHECK(f->name < a->strings_size && f->aliases < a->strings_size);
	CHECK(f->kind <= PB_SITE_CYG && f->refused < PB_NR_REFUSED);
	CHECK(!(f->flags & (PB_FUNC_EXITS | PB_FUNC_GOES_ON)) || a->flags & PB_AN_RETURNS);
	if (f->refused != PB_REFUSED_NOT)
		return f->window_len == 0 && !f->via &&
		       !(f->flags & (PB_FUNC_CODE_SLOT | PB_FUNC_SHARES));
	CHECK(f->window_len >= pb_func_jump_len(f) && f->window_len <= PB_WINDOW_MAX);
	CHECK(a->text_end - f->addr >= (uint64_t)f->window + f->window_len);
	return recipes_ok(a, f);
}

/* The slot must be in the text, and in reach of a jmp rel8 in the window. */
static bool slot_in_reach(const struct pb_analysis *a, const struct pb_func *f)
{
	uint64_t slot = pb_func_slot(f);
	int rel = f->via - PB_JUMP_SHORT;

	CHECK(f->window <= MAX_OFFSET && rel >= INT8_MIN && rel <= INT8_MAX);
	CHECK(slot > a->text_start && slot < a->text_end);
	return a->text_end - slot >= PB_JUMP_LEN;
}

/* Returns the start of the bytes that no other site may use: the slot, and the code that it
 * displaces. */
static uint64_t slot_start(const struct pb_func *f)
{
	return f->flags & PB_FUNC_CODE_SLOT ? pb_func_code_slot(f) : pb_func_slot(f);
}

static uint64_t slot_end(const struct pb_analysis *a, const struct pb_func *f)
{
	return f->flags & PB_FUNC_CODE_SLOT ?
	       pb_func_code_slot(f) + pb_func_code_recipe(a, f)->window_len :
	       pb_func_slot(f) + PB_JUMP_LEN;
}

/* No window and no other slot may overlap the slot of f[i]. Only functions that begin close to the
 * slot have to be checked. */
static bool slot_ok(const struct pb_analysis *a, uint32_t i)
{
	const struct pb_func *f = pb_analysis_funcs(a);
	uint64_t start = slot_start(&f[i]), end = slot_end(a, &f[i]);

	CHECK(slot_in_reach(a, &f[i]));
	CHECK(start >= a->text_start && start < end && end <= a->text_end);
	for (int64_t k = pb_analysis_lower(a, end + PB_SLOT_REACH); k >= 0; k--) {
		/* a function's window ends before the next function begins */
		if (f[k].addr + 2 * PB_SLOT_REACH < start && f[k + 1].addr <= start)
			break;
		if (f[k].window_len)
			CHECK(pb_func_window(&f[k]) >= end || pb_func_window_end(&f[k]) <= start);
		if (f[k].via && k != i)
			CHECK(slot_start(&f[k]) >= end || slot_end(a, &f[k]) <= start);
	}
	return true;
}

/* f[i] has the first of two shared jumps. The next function must have the second. */
static bool shared_ok(const struct pb_analysis *a, uint32_t i)
{
	const struct pb_func *f = pb_analysis_funcs(a) + i;

	CHECK(i + 1 < a->nr_funcs && f[1].addr == f->addr + 1);
	CHECK(!f->via && !f->window && f->window_len == PB_JUMP_SHARED);
	CHECK(f[1].refused == PB_REFUSED_NOT && !f[1].via && !f[1].window);
	return f->kind != PB_SITE_CYG && f[1].kind != PB_SITE_CYG && !(f[1].flags & PB_FUNC_SHARES);
}

static bool funcs_ok(const struct pb_analysis *a)
{
	const struct pb_func *f = pb_analysis_funcs(a);
	uint32_t nr_sites = 0;

	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		CHECK(func_ok(a, &f[i]));
		nr_sites += f[i].refused == PB_REFUSED_NOT;
		/* the functions are sorted, and no window reaches into the next function */
		CHECK(!i || f[i].addr > f[i - 1].addr);
		CHECK(!i || !f[i - 1].window_len || f[i].addr >= pb_func_window_end(&f[i - 1]));
	}
	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		CHECK(!f[i].via || slot_ok(a, i));
		CHECK(!(f[i].flags & PB_FUNC_SHARES) || shared_ok(a, i));
	}
	return nr_sites == a->nr_sites;
}

static bool nops_ok(const struct pb_analysis *a)
{
	const struct pb_nop *n = pb_analysis_nops(a);

	for (uint32_t i = 0; i < a->nr_nops; i++) {
		CHECK(n[i].len == 5 || n[i].len == 6);
		CHECK(n[i].addr >= a->text_start && n[i].addr < a->text_end);
		CHECK(a->text_end - n[i].addr >= n[i].len);
		CHECK(!i || n[i].addr - n[i - 1].addr >= n[i - 1].len);
		CHECK(!i || n[i].addr > n[i - 1].addr);
	}
	return true;
}

/* ---- exits ----------------------------------------------------------------- */

/* An exit must be an instruction of the recipe. A conditional exit must have exactly one fixup for
 * its target. Any other exit must end the recipe. */
static bool exit_ok(const struct pb_recipe *r, const struct pb_window_exit *e)
{
	const struct pb_pair *p = pb_recipe_pairs(r);
	unsigned i = 0, targets = 0, end;

	while (i < r->nr_pairs && p[i].orig != e->off)
		i++;
	CHECK(i < r->nr_pairs && e->kind < PB_NR_EXIT_KINDS && e->len);
	CHECK(e->off < r->window_len && e->len <= r->window_len - e->off);
	CHECK(e->kind != PB_EXIT_JCC || e->len >= PB_JUMP_SHORT);
	if (e->kind != PB_EXIT_JCC)
		return i == r->nr_pairs - 1u;
	CHECK(i + 1u < r->nr_pairs);
	end = p[i + 1].copy;
	for (i = 0, targets = 0; i < r->nr_fixups; i++)
		targets += pb_exit_target(r, e, &pb_recipe_fixups(r)[i]);
	return targets == 1 && end <= r->len;
}

static bool exits_ok(const struct pb_analysis *a, const struct pb_exit_window *w)
{
	const struct pb_window_exit *e = pb_window_exits(a, w);

	CHECK(w->nr);
	for (unsigned i = 0; i < w->nr; i++) {
		CHECK(!i || e[i].off >= e[i - 1].off + e[i - 1].len);
		CHECK(exit_ok(pb_window_recipe(a, w), &e[i]));
	}
	return true;
}

static bool second_ok(const struct pb_analysis *a, const struct pb_exit_window *w)
{
	const struct pb_recipe *r = pb_window_recipe(a, w);
	uint64_t left = a->recipes_size - w->recipe;

	if (w->how == PB_EXIT_WINDOW || w->how == PB_EXIT_PADDED || w->how == PB_EXIT_NEXT)
		return true;
	CHECK(left >= pb_recipe_padded_size(r));
	left -= pb_recipe_padded_size(r);
	if (w->how == PB_EXIT_PADDING_SLOT)
		return left >= PB_JUMP_LEN;
	if (w->how == PB_EXIT_CODE_SLOT)
		return code_slot_ok(pb_window_second(a, w), left);
	return recipe_ok(pb_window_second(a, w), left) &&
	       pb_window_second(a, w)->window_len >= PB_JUMP_LEN;
}

static bool next_ok(const struct pb_analysis *a, const struct pb_exit_window *w)
{
	const struct pb_func *f = pb_window_next(a, w);

	if (!f)
		return pb_window_shared_second(a, w) &&
		       pb_window_shared_second(a, w)->len >= PB_JUMP_LEN;
	return f->refused == PB_REFUSED_NOT && !f->via && !f->window && f->kind != PB_SITE_CYG &&
	       !(f->flags & PB_FUNC_SHARES);
}

static bool own_recipe_ok(const struct pb_analysis *a, const struct pb_exit_window *w)
{
	bool via = w->how == PB_EXIT_PADDING_SLOT || w->how == PB_EXIT_CODE_SLOT;
	bool shares = w->how == PB_EXIT_SHARED || w->how == PB_EXIT_NEXT;
	unsigned jump = via ? PB_JUMP_SHORT : shares ? PB_JUMP_SHARED : PB_JUMP_LEN;

	CHECK(w->how == PB_EXIT_WINDOW || w->how == PB_EXIT_PADDED || shares || via);
	CHECK(via == (w->via != 0) && w->len >= jump && w->len <= PB_WINDOW_MAX);
	CHECK(!shares || w->len == PB_JUMP_SHARED);
	CHECK(w->how != PB_EXIT_NEXT || next_ok(a, w));
	CHECK(w->recipe % 8 == 0 && w->recipe <= a->recipes_size);
	CHECK(recipe_ok(pb_window_recipe(a, w), a->recipes_size - w->recipe));
	CHECK(pb_window_recipe(a, w)->window_len == w->len);
	return second_ok(a, w);
}

static bool entry_window_ok(const struct pb_analysis *a, const struct pb_exit_window *w)
{
	const struct pb_func *f = pb_analysis_funcs(a) + w->recipe;

	CHECK(w->recipe < a->nr_funcs && f->refused == PB_REFUSED_NOT && !w->via);
	CHECK(f->flags & PB_FUNC_EXITS);
	return w->start == pb_func_window(f) && w->len == f->window_len;
}

/* The addresses [start, end). */
struct area {
	uint64_t start, end;
};

/* Returns the area that a window of exits needs in addition to its own bytes. This is the slot with
 * the code that the slot displaces, or the code that the second shared jump displaces. The area is
 * empty if the window has neither. */
static struct area second_area(const struct pb_analysis *a, const struct pb_exit_window *w)
{
	uint64_t slot = pb_window_slot(w);

	switch (w->how) {
	case PB_EXIT_PADDING_SLOT:
		return (struct area){ slot, slot + PB_JUMP_LEN };
	case PB_EXIT_CODE_SLOT:
		return (struct area){ slot - PB_JUMP_LEN,
			slot - PB_JUMP_LEN + pb_window_second(a, w)->window_len };
	case PB_EXIT_SHARED:
		return (struct area){ w->start + 1,
			w->start + 1 + pb_window_second(a, w)->window_len };
	default:
		return (struct area){ w->start, w->start };
	}
}

static bool apart(struct area x, struct area y)
{
	return x.end <= y.start || y.end <= x.start;
}

/* No window or slot of an entry may overlap x. Searches in the same way as slot_ok(). */
static bool apart_from_entries(const struct pb_analysis *a, struct area x)
{
	const struct pb_func *f = pb_analysis_funcs(a);

	for (int64_t k = pb_analysis_lower(a, x.end + PB_SLOT_REACH); k >= 0; k--) {
		if (f[k].addr + 2 * PB_SLOT_REACH < x.start && k + 1 < a->nr_funcs &&
		    f[k + 1].addr <= x.start)
			break;
		if (f[k].window_len)
			CHECK(apart(x, (struct area){ pb_func_window(&f[k]),
				pb_func_window_end(&f[k]) }));
		if (f[k].via)
			CHECK(apart(x, (struct area){ slot_start(&f[k]), slot_end(a, &f[k]) }));
	}
	return true;
}

static bool apart_from_windows(const struct pb_analysis *a, uint32_t i, struct area x)
{
	const struct pb_exit_window *w = pb_analysis_windows(a);

	for (int64_t k = pb_window_lower(a, x.end + PB_SLOT_REACH); k >= 0; k--) {
		if (w[k].start + 2 * PB_SLOT_REACH < x.start)
			break;
		CHECK(apart(x, (struct area){ w[k].start, w[k].start + w[k].len }));
		CHECK(k == i || apart(x, second_area(a, &w[k])));
	}
	return true;
}

/* No other site may use the area that second_area() returns for window i. If the window has a slot,
 * the slot must be in reach of the window's short jump. */
static bool second_apart(const struct pb_analysis *a, uint32_t i)
{
	const struct pb_exit_window *w = pb_analysis_windows(a) + i;
	struct area second = second_area(a, w);

	if (second.start == second.end)
		return true;
	if (w->via)
		CHECK(w->via - PB_JUMP_SHORT >= INT8_MIN && w->via - PB_JUMP_SHORT <= INT8_MAX);
	CHECK(second.start >= a->text_start && second.end > second.start &&
	      second.end <= a->text_end);
	return apart_from_entries(a, second) && apart_from_windows(a, i, second);
}

/* No window of exits may overlap the window of an entry. Both tables are sorted by address. */
static bool windows_apart(const struct pb_analysis *a)
{
	const struct pb_exit_window *w = pb_analysis_windows(a);
	const struct pb_func *f = pb_analysis_funcs(a);
	uint32_t k = 0;

	for (uint32_t i = 0; i < a->nr_windows; i++) {
		struct area own = { w[i].start, w[i].start + w[i].len };

		if (w[i].how == PB_EXIT_ENTRY)
			continue;	/* this window is the window of an entry */
		/* an entry's window ends before the next function begins */
		while (k < a->nr_funcs &&
		       (!f[k].window_len || pb_func_window_end(&f[k]) <= own.start))
			k++;
		for (uint32_t n = k; n < a->nr_funcs && f[n].addr < own.end; n++)
			CHECK(!f[n].window_len ||
			      apart(own, (struct area){ pb_func_window(&f[n]),
				      pb_func_window_end(&f[n]) }));
	}
	return true;
}

/* No window of exits may overlap the slot of f. */
static bool slot_apart(const struct pb_analysis *a, const struct pb_func *f)
{
	const struct pb_exit_window *w = pb_analysis_windows(a);
	struct area slot = { slot_start(f), slot_end(a, f) };

	for (int64_t i = pb_window_lower(a, slot.end); i >= 0 &&
	     w[i].start + PB_WINDOW_MAX > slot.start; i--)
		CHECK(w[i].how == PB_EXIT_ENTRY ||
		      apart(slot, (struct area){ w[i].start, w[i].start + w[i].len }));
	return true;
}

static bool windows_ok(const struct pb_analysis *a)
{
	const struct pb_exit_window *w = pb_analysis_windows(a);
	uint64_t exits = 0, entries = 0;

	for (uint32_t i = 0; i < a->nr_windows; i++) {
		CHECK(w[i].start >= a->text_start && w[i].start < a->text_end);
		CHECK(a->text_end - w[i].start >= w[i].len);
		CHECK(!i ||
		      (w[i].start > w[i - 1].start && w[i].start >= w[i - 1].start + w[i - 1].len));
		CHECK(w[i].how == PB_EXIT_ENTRY ? entry_window_ok(a, &w[i]) :
		      own_recipe_ok(a, &w[i]));
		CHECK(w[i].first == exits && w[i].nr <= a->nr_exits - exits);
		exits += w[i].nr;
		entries += w[i].how == PB_EXIT_ENTRY;
		CHECK(exits_ok(a, &w[i]));
	}
	CHECK(windows_apart(a));
	for (uint32_t i = 0; i < a->nr_windows; i++)
		CHECK(second_apart(a, i));
	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		const struct pb_func *f = &pb_analysis_funcs(a)[i];

		entries -= !!(f->flags & PB_FUNC_EXITS);
		CHECK(!f->via || slot_apart(a, f));
	}
	return exits == a->nr_exits && !entries;
}

static bool left_by_ok(const struct pb_analysis *a)
{
	const uint32_t *leaves = (const uint32_t *)((const char *)a + a->leaves_offset);
	const uint32_t *left_by = (const uint32_t *)((const char *)a + a->left_by_offset);
	const struct pb_func *f = pb_analysis_funcs(a);

	CHECK(!leaves[0] && leaves[a->nr_funcs] == a->nr_left_by);
	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		CHECK(leaves[i] <= leaves[i + 1] && leaves[i + 1] <= a->nr_left_by);
		CHECK(pb_func_inexit(a, &f[i]) < PB_NR_INEXIT);
		if (pb_func_inexit(a, &f[i]) == PB_INEXIT_NOT)
			CHECK(f[i].refused == PB_REFUSED_NOT);
		else
			CHECK(leaves[i] == leaves[i + 1]);
	}
	for (uint32_t i = 0; i < a->nr_left_by; i++)
		CHECK(left_by[i] < a->nr_windows);
	return true;
}

int pb_analysis_check(const void *map, size_t size)
{
	const struct pb_analysis *a = map;

	if ((uintptr_t)map % 8 || size < sizeof(*a))
		return -EINVAL;
	if (!header_ok(a, size) || !funcs_ok(a) || !nops_ok(a))
		return -EINVAL;
	return !(a->flags & PB_AN_RETURNS) || (windows_ok(a) && left_by_ok(a)) ? 0 : -EINVAL;
}
