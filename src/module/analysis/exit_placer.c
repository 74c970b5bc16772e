/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decides whether a window of exits may begin at an address. exit_windows.c and exit_shared.c
 * choose the addresses to try. Each byte of code has a bit that says whether a window, a slot or
 * displaced code occupies the byte. So windows, slots and displaced code never overlap.
 */
#include <string.h>
#include "module/analysis/exit_placer.h"

#define MAX_BACK	256	/* how many instructions pb_placer_alive() goes back at most */

static bool any_bit(const uint64_t *bits, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		if (pb_bit_test(bits, i))
			return true;
	return false;
}

bool pb_placer_used(const struct pb_an *an, uint64_t start, uint64_t end)
{
	const struct pb_range *r = pb_range_find(an, start);

	return !r || end - r->addr > r->size || any_bit(r->used, start - r->addr, end - r->addr);
}

void pb_placer_use(struct pb_an *an, uint64_t start, uint64_t end, bool used)
{
	const struct pb_range *r = pb_range_find(an, start);

	for (uint64_t i = start - r->addr; i < end - r->addr && i < r->size; i++) {
		if (used)
			r->used[i / 64] |= 1ull << i % 64;
		else
			r->used[i / 64] &= ~(1ull << i % 64);
	}
}

/* True if a jump or a call leads to a byte of (from, to]. */
static bool led_to(const struct pb_an *an, uint64_t from, uint64_t to)
{
	const struct pb_range *r = pb_range_find(an, from);

	return any_bit(r->reached, from + 1 - r->addr, to + 1 - r->addr);
}

uint32_t pb_placer_recipe(struct pb_an *an, const struct pb_window_out *w)
{
	static const uint8_t zeros[8];
	uint8_t bytes[PB_WINDOW_STORE_MAX];
	uint32_t at = (uint32_t)an->recipes.n;

	pb_vec_append(&an->recipes, bytes, pb_window_store(w, bytes));
	pb_vec_append(&an->recipes, zeros, -an->recipes.n % 8);
	return at;
}

/* True if a displaced instruction begins at the offset. */
static bool holds(const struct pb_window_out *w, uint64_t off)
{
	for (unsigned i = 0; i < w->head.nr_pairs; i++)
		if (w->pairs[i].orig == off && off < w->head.window_len)
			return true;
	return false;
}

bool pb_placer_endbr(const struct pb_an *an, uint64_t addr)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const struct pb_range *r = pb_range_find(an, addr);
	uint64_t off = addr - r->addr;

	return r->size - off >= sizeof(endbr) && !memcmp(r->bytes + off, endbr, sizeof(endbr));
}

/* True if the window's bytes after the exit are padding. Zeros don't count as padding, because they
 * may be data. */
static bool is_padding(struct pb_placer *p, const struct pb_fn_exit *e, uint64_t start)
{
	const struct pb_range *r = pb_range_find(p->an, start);
	uint64_t at = e->addr + e->len - r->addr, end = start + p->out.head.window_len - r->addr;
	struct pb_insn i;

	for (; at < end; at += i.length)
		if (!pb_insn_decode(&p->decoder, r->bytes + at, r->size - at, &i) ||
		    (i.what != PB_INSN_NOP && r->bytes[at] != PB_INSN_INT3))
			return false;
	return true;
}

bool pb_placer_fits(struct pb_placer *p, const struct pb_fn_exit *e, uint64_t start,
		    unsigned jump_len, uint64_t old_end)
{
	uint64_t reach = e->addr + e->len - start;

	if (reach > PB_WINDOW_MAX || led_to(p->an, start, e->addr) ||
	    pb_placer_endbr(p->an, start) ||
	    pb_window_to(p->an, start, start, jump_len, (unsigned)reach, &p->out) ||
	    !holds(&p->out, e->addr - start) || (p->out.padded && !is_padding(p, e, start)))
		return false;
	return !pb_placer_used(p->an, old_end, start + p->out.head.window_len);
}

void pb_placer_keep(struct pb_placer *p, struct pb_fn_exit *e, uint64_t start,
		    enum pb_exit_how how)
{
	struct pb_an_window w = {
		.start = start, .len = p->out.head.window_len, .how = (uint8_t)how,
		.fn = -1, .on = -1, .recipe = pb_placer_recipe(p->an, &p->out),
	};

	pb_placer_use(p->an, start, start + w.len, true);
	p->last = (long)p->an->exit_windows.n;
	e->window = (uint32_t)p->last;
	e->how = (uint8_t)how;
	pb_vec_push(&p->an->exit_windows, w);
}

bool pb_placer_alive(struct pb_placer *p, uint64_t addr, uint32_t unit)
{
	const struct pb_fde *fde = &p->an->cfi.fdes.v[unit];
	const struct pb_range *r = pb_range_find(p->an, addr);
	struct pb_insn i;

	for (unsigned n = 0; n < MAX_BACK && addr > fde->start && !pb_exit_work(p->an, 8); n++) {
		if (pb_bit_test(r->reached, addr - r->addr))
			return true;
		addr = pb_start_before(r, addr, fde->start);
		if (!addr || !pb_insn_decode(&p->decoder, r->bytes + (addr - r->addr),
					     r->size - (addr - r->addr), &i) ||
		    i.what == PB_INSN_RET || i.what == PB_INSN_JMP)
			return false;
	}
	return addr == fde->start;
}
