/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A window for each exit: whole instructions that the jump to the return stub
 * takes the place of, the exit among them. Tried in this order:
 *
 *   ENTRY           the entry's window is made longer, so that the exit is in its copy
 *   WINDOW, PADDED  five bytes that end in the exit, or reach into the padding
 *                   after it (after a conditional jump the code may continue)
 *   JOINED          the window before is made longer
 *   HOLE, DUG       a short jump, and five bytes within its reach
 *   RIDES, NEXT     a jump of which only the first byte is its own
 *
 * Entries have chosen before, and keep what they have.
 */
#include <errno.h>
#include <string.h>
#include "abi/analysis_access.h"
#include "module/analysis/exits_priv.h"
#include "module/analysis/relocate.h"

#define MAX_CANDIDATES	8
#define MAX_BACK	256		/* instructions to look at when deciding whether code is reachable */
#define BELOW	(-INT8_MIN - PB_JUMP_SHORT)	/* from a window's start to a hole */
#define ABOVE	(INT8_MAX + PB_JUMP_SHORT)

struct placer {
	struct pb_an *an;
	ZydisDecoder decoder;
	struct pb_window_out out;
	long last;		/* the window made last, or -1 */
	pb_gap_vec gaps;
	size_t gap;		/* those before it are out of reach */
};

static bool any_bit(const uint64_t *bits, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		if (pb_bit_test(bits, i))
			return true;
	return false;
}

static bool is_used(const struct pb_an *an, uint64_t start, uint64_t end)
{
	const struct pb_range *r = pb_range_find(an, start);

	return !r || end - r->addr > r->size || any_bit(r->used, start - r->addr, end - r->addr);
}

static void set_used(struct pb_an *an, uint64_t start, uint64_t end, bool used)
{
	const struct pb_range *r = pb_range_find(an, start);

	for (uint64_t i = start - r->addr; i < end - r->addr && i < r->size; i++) {
		if (used)
			r->used[i / 64] |= 1ull << i % 64;
		else
			r->used[i / 64] &= ~(1ull << i % 64);
	}
}

/* Does anything lead to (from, to]? */
static bool led_to(const struct pb_an *an, uint64_t from, uint64_t to)
{
	const struct pb_range *r = pb_range_find(an, from);

	return any_bit(r->reached, from + 1 - r->addr, to + 1 - r->addr);
}

static void mark_entries(struct pb_an *an)
{
	for (size_t i = 0; i < an->fns.n; i++) {
		const struct pb_fn *f = &an->fns.v[i];
		uint64_t window = f->addr + f->window, hole = window + (uint64_t)(int64_t)f->via;

		if (f->refused)
			continue;
		set_used(an, window, window + f->window_len, true);
		if (f->dug_len)
			set_used(an, hole - PB_JUMP_LEN, hole - PB_JUMP_LEN + f->dug_len, true);
		else if (f->via)
			set_used(an, hole, hole + PB_JUMP_LEN, true);
	}
}

/* The instruction before addr if it runs on into it, and nothing else leads to
 * what is there; else 0. */
static uint64_t step_back(struct placer *p, uint64_t addr, uint64_t floor)
{
	const struct pb_range *r = pb_range_find(p->an, addr);
	uint64_t before = pb_start_before(r, addr, floor > addr - 15 ? floor : addr - 15);
	struct pb_insn i;

	if (!before || pb_bit_test(r->reached, addr - r->addr) ||
	    !pb_insn_decode(&p->decoder, r->bytes + (before - r->addr), r->size - (before - r->addr), &i) ||
	    before + i.length != addr || i.what == PB_INSN_CALL || i.what == PB_INSN_RET ||
	    i.what == PB_INSN_JMP)
		return 0;
	return before;
}

static uint32_t add_recipe(struct pb_an *an, const struct pb_window_out *w)
{
	static const uint8_t zeros[8];
	uint8_t bytes[PB_WINDOW_STORE_MAX];
	uint32_t at = (uint32_t)an->recipes.n;

	pb_vec_append(&an->recipes, bytes, pb_window_store(w, bytes));
	pb_vec_append(&an->recipes, zeros, -an->recipes.n % 8);
	return at;
}

/* The hole's bytes in the file follow the recipe, as an entry's do. */
static void add_bytes(struct pb_an *an, const struct pb_range *r, uint64_t hole)
{
	static const uint8_t zeros[8];

	pb_vec_append(&an->recipes, r->bytes + (hole - r->addr), PB_JUMP_LEN);
	pb_vec_append(&an->recipes, zeros, 8 - PB_JUMP_LEN);
}

/* Is one of the displaced instructions the one at the offset? */
static bool holds(const struct pb_window_out *w, uint64_t off)
{
	for (unsigned i = 0; i < w->head.nr_pairs; i++)
		if (w->pairs[i].orig == off && off < w->head.window_len)
			return true;
	return false;
}

/* Where an indirect branch may have to land on this very instruction. */
static bool is_landing(const struct pb_an *an, uint64_t addr)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const struct pb_range *r = pb_range_find(an, addr);
	uint64_t off = addr - r->addr;

	return r->size - off >= sizeof(endbr) && !memcmp(r->bytes + off, endbr, sizeof(endbr));
}

/* Whether the bytes of the window after the exit are padding. Zeros may be data. */
static bool is_padding(struct placer *p, const struct pb_fn_exit *e, uint64_t start)
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

/* May there be a window at `start` that holds the exit? */
static bool fits(struct placer *p, const struct pb_fn_exit *e, uint64_t start, unsigned jump_len,
		 uint64_t old_end)
{
	uint64_t reach = e->addr + e->len - start;

	if (reach > PB_WINDOW_MAX || led_to(p->an, start, e->addr) || is_landing(p->an, start) ||
	    pb_window_to(p->an, start, start, jump_len, (unsigned)reach, &p->out) ||
	    !holds(&p->out, e->addr - start) || (p->out.padded && !is_padding(p, e, start)))
		return false;
	return !is_used(p->an, old_end, start + p->out.head.window_len);
}

static void keep(struct placer *p, struct pb_fn_exit *e, uint64_t start, enum pb_exit_how how)
{
	struct pb_an_window w = { .start = start, .len = p->out.head.window_len, .how = (uint8_t)how,
				    .fn = -1, .on = -1, .recipe = add_recipe(p->an, &p->out) };

	set_used(p->an, start, start + w.len, true);
	p->last = (long)p->an->exit_windows.n;
	e->window = (uint32_t)p->last;
	e->how = (uint8_t)how;
	pb_vec_push(&p->an->exit_windows, w);
}

/* A longer recipe is followed by the same, the hole's bytes or a dig's recipe. */
static void add_behind(struct pb_an *an, const struct pb_an_window *w)
{
	const struct pb_recipe *r = (const struct pb_recipe *)(an->recipes.v + w->recipe);
	size_t from = w->recipe + pb_recipe_behind(r), n = PB_JUMP_LEN;

	if (w->dug_len)
		n = pb_recipe_size((const struct pb_recipe *)(an->recipes.v + from));
	n = (n + 7) & ~(size_t)7;
	if (pb_vec_reserve(&an->recipes, n)) {
		memcpy(an->recipes.v + an->recipes.n, an->recipes.v + from, n);
		an->recipes.n += n;
	}
}

static const struct pb_fn *entry_before(const struct pb_an *an, uint64_t addr)
{
	long i = pb_fn_lower(an, addr);

	return i >= 0 && !an->fns.v[i].refused ? &an->fns.v[i] : NULL;
}

/* The window of f's entry, as one of exits. */
static struct pb_an_window *entry_window(struct placer *p, const struct pb_fn *f)
{
	struct pb_an *an = p->an;
	int32_t fn = (int32_t)(f - an->fns.v);

	if (p->last < 0 || an->exit_windows.v[p->last].fn != fn) {
		p->last = (long)an->exit_windows.n;
		pb_vec_push(&an->exit_windows, (struct pb_an_window){
			.start = f->addr + f->window, .len = f->window_len, .how = PB_EXIT_ENTRY,
			.fn = fn, .on = -1, .via = f->via, .dug_len = f->dug_len, .recipe = f->recipe });
	}
	return an->exit_windows.failed ? NULL : &an->exit_windows.v[p->last];
}

static bool join(struct placer *p, struct pb_fn_exit *e, const struct pb_an_window *w)
{
	e->how = w->fn >= 0 ? PB_EXIT_ENTRY : PB_EXIT_JOINED;
	e->window = (uint32_t)p->last;
	return true;
}

/* Is it displaced already, by its entry or by the exit before it? */
static bool is_inside(struct placer *p, struct pb_fn_exit *e)
{
	struct pb_an *an = p->an;
	const struct pb_fn *f = entry_before(an, e->addr);
	const struct pb_an_window *w = p->last >= 0 ? &an->exit_windows.v[p->last] : NULL;

	if (w && e->addr >= w->start && e->addr < w->start + w->len)
		return join(p, e, w);
	if (!f || e->addr < f->addr + f->window || e->addr >= f->addr + f->window + f->window_len)
		return false;
	w = entry_window(p, f);
	return w && join(p, e, w);
}

static bool own_window(struct placer *p, struct pb_fn_exit *e, const uint64_t *at, unsigned n)
{
	uint64_t end = e->addr + e->len;

	for (unsigned i = 0; i < n; i++)
		if ((end - at[i] >= PB_JUMP_LEN || e->kind == PB_EXIT_JCC) &&
		    fits(p, e, at[i], PB_JUMP_LEN, at[i])) {
			keep(p, e, at[i], PB_EXIT_WINDOW);
			return true;
		}
	for (unsigned i = n; i-- > 0;)
		if (end - at[i] < PB_JUMP_LEN && fits(p, e, at[i], PB_JUMP_LEN, at[i])) {
			keep(p, e, at[i], PB_EXIT_PADDED);
			return true;
		}
	return false;
}

/* The window before is made so long that it holds the exit. */
static bool lengthen(struct placer *p, struct pb_fn_exit *e)
{
	struct pb_an *an = p->an;
	const struct pb_fn *f = entry_before(an, e->addr);
	struct pb_an_window *w = p->last >= 0 ? &an->exit_windows.v[p->last] : NULL;
	unsigned jump = PB_JUMP_LEN;
	uint64_t end;
	uint32_t recipe;

	if (f && (!w || w->start <= f->addr + f->window)) {
		if (f->flags & PB_FUNC_RIDES || f->addr + f->window >= e->addr ||
		    e->addr + e->len - f->addr - f->window > PB_WINDOW_MAX)
			return false;
		if (f->via)
			jump = PB_JUMP_SHORT;
		w = entry_window(p, f);
	}
	if (!w)
		return false;
	end = w->start + w->len;
	if (w->start >= e->addr || e->addr + e->len - w->start > PB_WINDOW_MAX || end > e->addr ||
	    !fits(p, e, w->start, w->via ? PB_JUMP_SHORT : jump, end))
		return false;
	set_used(an, end, w->start + p->out.head.window_len, true);
	w->len = p->out.head.window_len;
	recipe = add_recipe(an, &p->out);
	if (w->via && !an->recipes.failed)
		add_behind(an, w);
	w->recipe = recipe;
	return join(p, e, w);
}

static unsigned candidates(struct placer *p, const struct pb_fn_exit *e, uint64_t at[MAX_CANDIDATES])
{
	uint64_t floor = p->an->cfi.fdes.v[e->unit].start, addr = e->addr;
	unsigned n = 0;

	while (addr && n < MAX_CANDIDATES) {
		at[n++] = addr;
		if (e->addr + e->len - addr >= PB_JUMP_LEN)
			break;
		addr = step_back(p, addr, floor);
	}
	return n;
}

/* In a short function the entry's window can go on up to the exit: the call then needs no
 * jump back to the text, and none out of it again. (A function that reports its calls
 * itself has no jump at its entry.) */
static bool in_entry(struct placer *p, struct pb_fn_exit *e)
{
	const struct pb_fn *f = entry_before(p->an, e->addr);
	const struct pb_an_window *w = p->last >= 0 ? &p->an->exit_windows.v[p->last] : NULL;

	return f && f->kind != PB_SITE_CYG && (!w || w->start <= f->addr + f->window) && lengthen(p, e);
}

static void place(struct placer *p, struct pb_fn_exit *e)
{
	uint64_t at[MAX_CANDIDATES];
	unsigned n;

	if (is_inside(p, e) || in_entry(p, e))
		return;
	n = candidates(p, e, at);
	if (!own_window(p, e, at, n))
		lengthen(p, e);
}

/* What is left of all padding. */
static void add_gaps(struct placer *p, const pb_gap_vec *from, bool inside)
{
	struct pb_an *an = p->an;

	for (size_t i = 0; i < from->n; i++) {
		struct pb_gap g = from->v[i];
		const struct pb_range *r = pb_range_find(an, g.addr);
		uint64_t at = g.addr;
		long u = inside ? pb_cfi_find(&an->cfi, at) : -1;

		/* in code of which nothing is certain, padding may be led to */
		if (inside && (u < 0 || an->units[u]))
			continue;
		/* cut at what is used or led to */
		for (uint64_t a = g.addr; a <= g.end; a++) {
			bool taken = a == g.end || pb_bit_test(r->used, a - r->addr);
			bool led = a < g.end && pb_bit_test(r->reached, a - r->addr);

			if (!taken && !led)
				continue;
			if (a - at >= PB_JUMP_LEN)
				pb_vec_push(&p->gaps, (struct pb_gap){ at, a });
			if (led)
				break;
			at = a + 1;
		}
	}
}

static int by_addr(const void *a, const void *b)
{
	const struct pb_gap *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static uint64_t take_hole(struct placer *p, uint64_t window)
{
	struct pb_gap *g = p->gaps.v;

	while (p->gap < p->gaps.n && g[p->gap].end + BELOW < window + PB_JUMP_LEN)
		p->gap++;
	for (size_t i = p->gap; i < p->gaps.n && g[i].addr <= window + ABOVE; i++) {
		uint64_t hole = g[i].addr;

		if (hole + BELOW < window)
			hole = window - BELOW;
		if (hole + PB_JUMP_LEN > g[i].end || is_used(p->an, hole, hole + PB_JUMP_LEN))
			continue;
		g[i].addr = hole + PB_JUMP_LEN;
		return hole;
	}
	return 0;
}

/* Does control come to the instruction? Code that none comes to may be data. */
static bool is_alive(struct placer *p, uint64_t addr, uint32_t unit)
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

/* A place from which the hole is in reach of the window. */
static uint64_t dig(struct placer *p, uint64_t window, struct pb_window_out *dug)
{
	struct pb_an *an = p->an;
	const struct pb_range *r = pb_range_find(an, window);
	uint64_t low = window - BELOW - PB_JUMP_LEN, high = window + ABOVE - PB_JUMP_LEN;

	if (low < r->addr || low > window)
		low = r->addr;
	for (uint64_t at = low; at <= high && at - r->addr < r->size; at++) {
		long u;

		if (pb_exit_work(an, 16))
			return 0;
		if (!pb_bit_test(r->starts, at - r->addr) || is_used(an, at, at + PB_DIG_LEN))
			continue;
		u = pb_cfi_find(&an->cfi, at);
		if (u < 0 || an->units[u] || !is_alive(p, at, (uint32_t)u) || !pb_dig_fits(an, at, dug) ||
		    is_used(an, at, at + dug->head.window_len))
			continue;
		return at;
	}
	return 0;
}

static bool short_window(struct placer *p, struct pb_fn_exit *e, bool in_code)
{
	struct pb_an *an = p->an;
	struct pb_window_out dug;
	struct pb_an_window *w;
	uint64_t at[MAX_CANDIDATES], hole;
	unsigned n = candidates(p, e, at);

	e->why = PB_INEXIT_SHORT;
	for (unsigned i = 0; i < n; i++) {
		if (!fits(p, e, at[i], PB_JUMP_SHORT, at[i]))
			continue;
		e->why = PB_INEXIT_HOLE;
		/* holes keep off the window itself */
		set_used(an, at[i], at[i] + p->out.head.window_len, true);
		hole = in_code ? dig(p, at[i], &dug) : take_hole(p, at[i]);
		if (!hole) {
			set_used(an, at[i], at[i] + p->out.head.window_len, false);
			continue;
		}
		keep(p, e, at[i], in_code ? PB_EXIT_DUG : PB_EXIT_HOLE);
		w = &an->exit_windows.v[p->last];
		if (in_code)
			hole += PB_JUMP_LEN;
		w->via = (int16_t)(hole - at[i]);
		if (in_code) {
			w->dug_len = dug.head.window_len;
			set_used(an, hole - PB_JUMP_LEN, hole - PB_JUMP_LEN + w->dug_len, true);
			add_recipe(an, &dug);
		} else {
			set_used(an, hole, hole + PB_JUMP_LEN, true);
			add_bytes(an, pb_range_find(an, hole), hole);
		}
		return true;
	}
	return false;
}

/* A ret of one byte: the jump that replaces it takes its displacement from the first
 * four bytes of the jump that replaces the code after it. */
static bool ride(struct placer *p, struct pb_fn_exit *e)
{
	struct pb_an *an = p->an;
	uint64_t next = e->addr + e->len;
	const struct pb_range *r = pb_range_find(an, next);
	long u = pb_cfi_find(&an->cfi, next);
	struct pb_window_out carrier;
	struct pb_an_window *w;

	if (e->len != PB_JUMP_RIDE || !r || u < 0 || an->units[u] ||
	    !pb_bit_test(r->starts, next - r->addr) || !is_alive(p, next, (uint32_t)u) ||
	    is_landing(an, next) || !pb_carrier_fits(an, next, &carrier) ||
	    is_used(an, e->addr, next + carrier.head.window_len) ||
	    pb_window_at(an, e->addr, e->addr, PB_JUMP_RIDE, &p->out))
		return false;
	keep(p, e, e->addr, PB_EXIT_RIDES);
	w = &an->exit_windows.v[p->last];
	w->dug_len = carrier.head.window_len;
	set_used(an, next, next + w->dug_len, true);
	add_recipe(an, &carrier);
	return true;
}

/* The same, where the next one is that of an entry. */
static bool ride_on_next(struct placer *p, struct pb_fn_exit *e)
{
	struct pb_an *an = p->an;
	uint64_t next = e->addr + e->len;
	long i = pb_fn_lower(an, next);
	const struct pb_fn *f = i >= 0 ? &an->fns.v[i] : NULL;

	if (e->len != PB_JUMP_RIDE || !f || f->addr != next || f->refused || f->via || f->window ||
	    f->kind == PB_SITE_CYG || f->flags & PB_FUNC_RIDES || is_used(an, e->addr, next) ||
	    pb_window_at(an, e->addr, e->addr, PB_JUMP_RIDE, &p->out))
		return false;
	keep(p, e, e->addr, PB_EXIT_NEXT);
	return true;
}

/* The window of exits that begins at addr or a little after it, and has a jump of its own; -1. *last: the exit that
 * ends it. */
static long window_after(struct placer *p, uint64_t addr, const struct pb_fn_exit **last)
{
	struct pb_an *an = p->an;
	long found = -1;

	*last = NULL;
	if (pb_exit_work(an, an->exits.n))
		return -1;
	for (size_t i = 0; i < an->exits.n; i++) {
		const struct pb_fn_exit *e = &an->exits.v[i];
		const struct pb_an_window *w = e->how ? &an->exit_windows.v[e->window] : NULL;

		if (!w || w->start < addr || w->start - addr > PB_WINDOW_MAX || w->fn >= 0 ||
		    (w->how != PB_EXIT_WINDOW && w->how != PB_EXIT_PADDED) ||
		    (found >= 0 && w->start > an->exit_windows.v[found].start))
			continue;
		if (found != (long)e->window || e->addr > (*last)->addr)
			*last = e;
		found = (long)e->window;
	}
	return found;
}

/* The same, where the next one is that of a window of exits, which is made to begin there. */
static bool ride_on_exit(struct placer *p, struct pb_fn_exit *e)
{
	struct pb_an *an = p->an;
	uint64_t next = e->addr + e->len;
	const struct pb_range *r = pb_range_find(an, next);
	const struct pb_fn_exit *last;
	struct pb_an_window *w;
	long i;

	if (e->len != PB_JUMP_RIDE || !r || !pb_bit_test(r->starts, next - r->addr) || is_used(an, e->addr, next))
		return false;
	i = window_after(p, next, &last);
	w = i >= 0 ? &an->exit_windows.v[i] : NULL;
	if (!w || (w->start > next && is_used(an, next, w->start)))
		return false;
	if (w->start > next) {
		if (!fits(p, last, next, PB_JUMP_LEN, w->start + w->len))
			return false;
		set_used(an, next, w->start, true);
		w->start = next;
		w->len = p->out.head.window_len;
		w->how = p->out.padded ? PB_EXIT_PADDED : PB_EXIT_WINDOW;
		w->recipe = add_recipe(an, &p->out);
	}
	if (pb_window_at(an, e->addr, e->addr, PB_JUMP_RIDE, &p->out))
		return false;
	keep(p, e, e->addr, PB_EXIT_NEXT);
	if (!an->exit_windows.failed)
		an->exit_windows.v[p->last].on = (int32_t)i;
	return true;
}

static void short_windows(struct placer *p, const bool *wanted)
{
	struct pb_an *an = p->an;

	add_gaps(p, &an->gaps, false);
	add_gaps(p, &an->pads, true);
	pb_vec_sort(&p->gaps, by_addr);
	for (size_t i = 0; i < an->exits.n; i++)
		if (an->exits.v[i].exit && wanted[an->exits.v[i].unit] && !an->exits.v[i].how)
			short_window(p, &an->exits.v[i], false);
	/* no dig over an exit that has no window; one that an entry has displaced for
	 * its hole gets none */
	for (size_t i = 0; i < an->exits.n; i++) {
		struct pb_fn_exit *e = &an->exits.v[i];

		if (!e->exit || e->how)
			continue;
		e->displaced = is_used(an, e->addr, e->addr + e->len);
		set_used(an, e->addr, e->addr + e->len, true);
	}
	for (size_t i = 0; i < an->exits.n; i++) {
		struct pb_fn_exit *e = &an->exits.v[i];

		if (!e->exit || !wanted[e->unit] || e->how || e->displaced)
			continue;
		set_used(an, e->addr, e->addr + e->len, false);
		if (!short_window(p, e, true) && !ride(p, e) && !ride_on_next(p, e) && !ride_on_exit(p, e))
			set_used(an, e->addr, e->addr + e->len, true);
	}
}

int pb_exit_windows_make(struct pb_an *an, const bool *wanted)
{
	struct placer p = { .an = an, .last = -1 };

	ZydisDecoderInit(&p.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	mark_entries(an);
	for (size_t i = 0; i < an->exits.n; i++)
		if (an->exits.v[i].exit && wanted[an->exits.v[i].unit])
			place(&p, &an->exits.v[i]);
	short_windows(&p, wanted);
	bool failed = p.gaps.failed || an->exit_windows.failed || an->recipes.failed;

	pb_vec_free(&p.gaps);
	return failed ? -ENOMEM : 0;
}
