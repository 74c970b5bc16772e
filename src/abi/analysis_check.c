/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "abi/analysis_check.h"
#include <errno.h>
#include <stdbool.h>
#include "abi/analysis_access.h"

#define MAX_OFFSET	16	/* of a window that has a hole; PB_HOLE_REACH counts on it */

#define CHECK(condition) do { if (!(condition)) return false; } while (0)

static bool table_ok(const struct pb_analysis *a, uint64_t offset, uint64_t nr, uint64_t item,
		     uint64_t align)
{
	return offset % align == 0 && offset >= sizeof(*a) && offset <= a->size &&
	       nr <= (a->size - offset) / item;
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
	/* "" in front and a NUL at the end: then every offset is a string */
	CHECK(a->strings_size && a->strings_size <= UINT32_MAX);
	CHECK(!*pb_analysis_string(a, 0));
	CHECK(!*pb_analysis_string(a, (uint32_t)(a->strings_size - 1)));
	CHECK(a->soname < a->strings_size && a->path < a->strings_size);
	return true;
}

static bool fixup_ok(const struct pb_recipe *r, const struct pb_fixup *f)
{
	unsigned width = f->kind == PB_FIX_ABS64 ? 8 : 4;

	return f->kind >= PB_FIX_REL32 && f->kind <= PB_FIX_HI32 &&
	       (unsigned)f->off + width + f->addend <= r->len;
}

/* left: bytes from r to the end of the recipes. */
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

static bool dug_ok(const struct pb_recipe *r, uint64_t left)
{
	CHECK(recipe_ok(r, left) && r->window_len >= PB_DIG_LEN);
	/* no instruction where the hole is */
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
		return !(f->flags & PB_FUNC_DUG);
	CHECK(left >= pb_recipe_behind(r));
	left -= pb_recipe_behind(r);
	return f->flags & PB_FUNC_DUG ? dug_ok(pb_func_dug(a, f), left) : left >= PB_JUMP_LEN;
}

static bool func_ok(const struct pb_analysis *a, const struct pb_func *f)
{
	CHECK(f->addr >= a->text_start && f->addr < a->text_end);
	CHECK(f->name < a->strings_size && f->aliases < a->strings_size);
	CHECK(f->kind <= PB_SITE_CYG && f->refused < PB_NR_REFUSED);
	if (f->refused != PB_REFUSED_NOT)
		return f->window_len == 0 && !f->via && !(f->flags & (PB_FUNC_DUG | PB_FUNC_RIDES));
	CHECK(f->window_len >= pb_func_jump_len(f) && f->window_len <= PB_WINDOW_MAX);
	CHECK(a->text_end - f->addr >= (uint64_t)f->window + f->window_len);
	return recipes_ok(a, f);
}

/* In the text, and in reach of a jmp rel8 in the window. */
static bool hole_in_reach(const struct pb_analysis *a, const struct pb_func *f)
{
	uint64_t hole = pb_func_hole(f);
	int rel = f->via - PB_JUMP_SHORT;

	CHECK(f->window <= MAX_OFFSET && rel >= INT8_MIN && rel <= INT8_MAX);
	CHECK(hole > a->text_start && hole < a->text_end);
	return a->text_end - hole >= PB_JUMP_LEN;
}

/* What is nobody else's: the hole and the byte before it, or the dig. */
static uint64_t hole_start(const struct pb_func *f)
{
	return f->flags & PB_FUNC_DUG ? pb_func_dig(f) : pb_func_hole(f) - 1;
}

static uint64_t hole_end(const struct pb_analysis *a, const struct pb_func *f)
{
	return f->flags & PB_FUNC_DUG ? pb_func_dig(f) + pb_func_dug(a, f)->window_len :
					pb_func_hole(f) + PB_JUMP_LEN;
}

/* No window and no other hole in that of f[i]. What lies in the way begins near. */
static bool hole_ok(const struct pb_analysis *a, uint32_t i)
{
	const struct pb_func *f = pb_analysis_funcs(a);
	uint64_t start = hole_start(&f[i]), end = hole_end(a, &f[i]);

	CHECK(hole_in_reach(a, &f[i]));
	CHECK(start >= a->text_start && start < end && end <= a->text_end);
	for (int64_t k = pb_analysis_lower(a, end + PB_HOLE_REACH); k >= 0; k--) {
		/* windows end before the next function begins */
		if (f[k].addr + 2 * PB_HOLE_REACH < start && f[k + 1].addr <= start)
			break;
		if (f[k].window_len)
			CHECK(pb_func_window(&f[k]) >= end || pb_func_window_end(&f[k]) <= start);
		if (f[k].via && k != i)
			CHECK(hole_start(&f[k]) >= end || hole_end(a, &f[k]) <= start);
	}
	return true;
}

/* f[i] rides on the jump of the next one. */
static bool ride_ok(const struct pb_analysis *a, uint32_t i)
{
	const struct pb_func *f = pb_analysis_funcs(a) + i;

	CHECK(i + 1 < a->nr_funcs && f[1].addr == f->addr + 1);
	CHECK(!f->via && !f->window && f->window_len == PB_JUMP_RIDE);
	CHECK(f[1].refused == PB_REFUSED_NOT && !f[1].via && !f[1].window);
	return f->kind != PB_SITE_CYG && f[1].kind != PB_SITE_CYG && !(f[1].flags & PB_FUNC_RIDES);
}

static bool funcs_ok(const struct pb_analysis *a)
{
	const struct pb_func *f = pb_analysis_funcs(a);
	uint32_t nr_sites = 0;

	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		CHECK(func_ok(a, &f[i]));
		nr_sites += f[i].refused == PB_REFUSED_NOT;
		/* sorted, and no window reaches into the next function */
		CHECK(!i || f[i].addr > f[i - 1].addr);
		CHECK(!i || !f[i - 1].window_len || f[i].addr >= pb_func_window_end(&f[i - 1]));
	}
	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		CHECK(!f[i].via || hole_ok(a, i));
		CHECK(!(f[i].flags & PB_FUNC_RIDES) || ride_ok(a, i));
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

int pb_analysis_check(const void *map, size_t size)
{
	const struct pb_analysis *a = map;

	if ((uintptr_t)map % 8 || size < sizeof(*a))
		return -EINVAL;
	return header_ok(a, size) && funcs_ok(a) && nops_ok(a) ? 0 : -EINVAL;
}
