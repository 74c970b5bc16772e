/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For each function: its window and recipe, or the reason why not. */
#include <errno.h>
#include <string.h>
#include "base/base.h"
#include "module/module_priv.h"
#include "module/relocate.h"

/* Does anything in the module lead strictly inside [start, start + len)? */
static bool branched_into(const struct pb_range *r, uint64_t start, unsigned len)
{
	for (uint64_t off = start - r->addr + 1; off < start - r->addr + len; off++)
		if (pb_bit_test(r->reached, off))
			return true;
	return false;
}

static size_t nop_lower(const struct pb_an *an, uint64_t addr)
{
	size_t low = 0, high = an->nops.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (an->nops.v[mid].addr < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Relocated words are up to 8 bytes wide. */
static bool relocated(const struct pb_an *an, uint64_t start, unsigned len)
{
	size_t i = pb_addr_lower(&an->textrels, start > 7 ? start - 7 : 0);

	return i < an->textrels.n && an->textrels.v[i] < start + len;
}

/* A hook call that the window touches must be one of its instructions. */
static bool cuts_nop(const struct pb_an *an, const struct pb_window_out *w, uint64_t start)
{
	uint64_t end = start + w->head.window_len;
	size_t i = nop_lower(an, start > 5 ? start - 5 : 0);

	for (; i < an->nops.n && an->nops.v[i].addr < end; i++) {
		const struct pb_nop *n = &an->nops.v[i];
		bool whole = n->addr + n->len <= start;

		for (unsigned k = 0; k < w->head.nr_pairs; k++)
			whole |= start + w->pairs[k].orig == n->addr;
		if (!whole)
			return true;
	}
	return false;
}

static uint8_t kind_of(const struct pb_fn *f, const struct pb_window_out *w)
{
	/* fewer nops than a jump needs: instructions are displaced */
	if (f->kind == PB_SITE_NOP && !w->all_nops)
		return PB_SITE_SYMBOL;
	return f->kind;
}

static enum pb_refused make_window(struct pb_an *an, const struct pb_fn *f, unsigned jump_len,
				   struct pb_window_out *w)
{
	const struct pb_range *r = pb_range_find(an, f->addr);
	uint64_t start = f->addr + f->window, off = start - r->addr;
	size_t next = pb_addr_lower(&an->barriers, f->addr + 1);
	enum pb_refused refused;

	if (off >= r->size)
		return PB_REFUSED_SHORT;
	struct pb_window_in in = {
		.bytes = r->bytes + off, .addr = start, .avail = r->size - off,
		.jump_len = jump_len,
		.room = next < an->barriers.n ? an->barriers.v[next] - start : UINT64_MAX,
		.nops = an->nops.v, .nr_nops = an->nops.n,
	};

	if (next < an->barriers.n && an->barriers.v[next] <= start)
		return PB_REFUSED_CROSSES;
	refused = pb_window_make(&in, w);
	if (refused)
		return refused;
	if (relocated(an, start, w->head.window_len))
		return PB_REFUSED_TEXTREL;
	if (branched_into(r, start, w->head.window_len))
		return PB_REFUSED_BRANCH;
	if (cuts_nop(an, w, start))
		return PB_REFUSED_DECODE;
	return PB_REFUSED_NOT;
}

static void keep_window(struct pb_an *an, struct pb_fn *f, const struct pb_window_out *w,
			uint64_t hole)
{
	uint8_t bytes[PB_WINDOW_STORE_MAX + PB_JUMP_LEN] = { 0 };
	size_t size = pb_window_store(w, bytes);

	if (hole) {
		const struct pb_range *r = pb_range_find(an, hole);

		memcpy(bytes + size, r->bytes + (hole - r->addr), PB_JUMP_LEN);
		size += PB_JUMP_LEN;
		f->via = (int16_t)(hole - (f->addr + f->window));
	}
	f->kind = kind_of(f, w);
	f->window_len = w->head.window_len;
	f->recipe = (uint32_t)an->recipes.n;
	pb_vec_append(&an->recipes, bytes, pb_align_up(size, (size_t)8));
}

/* Where there is no room for the long jump but for the short one, the length
 * of the window is noted, to keep holes out of it. */
static void make_site(struct pb_an *an, struct pb_fn *f)
{
	struct pb_window_out w;

	f->refused = make_window(an, f, PB_JUMP_LEN, &w);
	if (!f->refused)
		keep_window(an, f, &w, 0);
	else if (!make_window(an, f, PB_JUMP_SHORT, &w))
		f->window_len = w.head.window_len;
}

static void make_short_sites(struct pb_an *an)
{
	size_t from = 0;

	pb_holes_prepare(an);
	for (size_t i = 0; i < an->fns.n; i++) {
		struct pb_fn *f = &an->fns.v[i];
		struct pb_window_out w;
		uint64_t hole;

		if (!f->refused || !f->window_len)
			continue;
		hole = pb_hole_take(an, &from, f->addr + f->window);
		if (!hole || make_window(an, f, PB_JUMP_SHORT, &w))
			continue;
		keep_window(an, f, &w, hole);
		f->refused = PB_REFUSED_NOT;
	}
}

int pb_sites_make(struct pb_an *an, const char **why)
{
	for (size_t i = 0; i < an->fns.n; i++) {
		struct pb_fn *f = &an->fns.v[i];

		if (!f->refused)
			make_site(an, f);
	}
	make_short_sites(an);
	*why = "too many functions";
	if (an->recipes.n > UINT32_MAX)
		return -EFBIG;
	*why = "no memory";
	return an->recipes.failed ? -ENOMEM : 0;
}
