/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds a window for each exit. The window consists of whole instructions, which include the exit.
 * A jump to the window's stub replaces them. Exits are taken in the order of their addresses. For
 * each exit, these kinds of windows are tried in this order:
 *
 *   ENTRY           the entry's window is made longer, so that its stub holds the exit
 *   WINDOW, PADDED  five bytes that end with the exit, or that reach into the padding after the
 *                   exit. If the exit is a conditional jump, they may also reach into the code
 *                   after it
 *   JOINED          the window before the exit is made longer
 *   PADDING_SLOT,   a short jump, and a trampoline slot of five bytes within its reach. The slot
 *   CODE_SLOT       lies in padding, or in code that is displaced for the slot
 *   SHARED, NEXT    a jump whose first byte replaces the exit, and whose displacement is part of
 *                   another jump (exit_shared.c)
 *
 * Entries got their windows and slots in an earlier stage, and keep them. The last four kinds are
 * tried only after all windows of the first four kinds are placed. So the last four kinds take only
 * bytes that no other window needs.
 */
#include <errno.h>
#include <string.h>
#include "abi/analysis_access.h"
#include "module/analysis/exit_placer.h"
#include "module/analysis/exit_shared.h"

#define MAX_CANDIDATES	8	/* at most this many starts of a window are tried for one exit */
#define BELOW	(-INT8_MIN - PB_JUMP_SHORT)	/* how far before a window's start a slot may lie */
#define ABOVE	(INT8_MAX + PB_JUMP_SHORT)	/* how far after a window's start a slot may lie */

/* Marks the bytes that entries have taken. */
static void mark_entries(struct pb_an *an)
{
	for (size_t i = 0; i < an->fns.n; i++) {
		const struct pb_fn *f = &an->fns.v[i];
		uint64_t window = f->addr + f->window, slot = window + (uint64_t)(int64_t)f->via;

		if (f->refused)
			continue;
		pb_placer_use(an, window, window + f->window_len, true);
		if (f->second_len)
			pb_placer_use(an, slot - PB_JUMP_LEN, slot - PB_JUMP_LEN + f->second_len,
				      true);
		else if (f->via)
			pb_placer_use(an, slot, slot + PB_JUMP_LEN, true);
	}
}

/* Returns the address of the instruction before addr, if control reaches addr only by falling
 * through from that instruction. Returns 0 if a branch leads to addr, or if the instruction is a
 * call or doesn't fall through. */
static uint64_t step_back(struct pb_placer *p, uint64_t addr, uint64_t floor)
{
	const struct pb_range *r = pb_range_find(p->an, addr);
	uint64_t before = pb_start_before(r, addr, floor > addr - 15 ? floor : addr - 15);
	struct pb_insn i;

	if (!before || pb_bit_test(r->reached, addr - r->addr) ||
	    !pb_insn_decode(&p->decoder, r->bytes + (before - r->addr),
			    r->size - (before - r->addr), &i) ||
	    before + i.length != addr || i.what == PB_INSN_CALL || i.what == PB_INSN_RET ||
	    i.what == PB_INSN_JMP)
		return 0;
	return before;
}

/* Appends the slot's original bytes to the recipe, as sites.c does for an entry. */
static void add_bytes(struct pb_an *an, const struct pb_range *r, uint64_t slot)
{
	static const uint8_t zeros[8];

	pb_vec_append(&an->recipes, r->bytes + (slot - r->addr), PB_JUMP_LEN);
	pb_vec_append(&an->recipes, zeros, 8 - PB_JUMP_LEN);
}

/* Copies the bytes after w's old recipe (the slot's bytes, or a second recipe) to the end of
 * an->recipes. The last recipe there is w's new recipe, which needs the same bytes after it. */
static void add_after(struct pb_an *an, const struct pb_an_window *w)
{
	const struct pb_recipe *r = (const struct pb_recipe *)(an->recipes.v + w->recipe);
	size_t from = w->recipe + pb_recipe_padded_size(r), n = PB_JUMP_LEN;

	if (w->second_len)
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

/* Returns the window of f's entry as a window of exits. Adds that window to the windows of exits,
 * unless it was already the last to be added. */
static struct pb_an_window *entry_window(struct pb_placer *p, const struct pb_fn *f)
{
	struct pb_an *an = p->an;
	int32_t fn = (int32_t)(f - an->fns.v);

	if (p->last < 0 || an->exit_windows.v[p->last].fn != fn) {
		p->last = (long)an->exit_windows.n;
		pb_vec_push(&an->exit_windows, (struct pb_an_window){
			.start = f->addr + f->window, .len = f->window_len, .how = PB_EXIT_ENTRY,
			.fn = fn, .on = -1, .via = f->via, .second_len = f->second_len,
			.recipe = f->recipe });
	}
	return an->exit_windows.failed ? NULL : &an->exit_windows.v[p->last];
}

static bool join(struct pb_placer *p, struct pb_fn_exit *e, const struct pb_an_window *w)
{
	e->how = w->fn >= 0 ? PB_EXIT_ENTRY : PB_EXIT_JOINED;
	e->window = (uint32_t)p->last;
	return true;
}

/* True if the window that was placed last, or the entry's window, already holds the exit. The exit
 * then joins that window. */
static bool is_inside(struct pb_placer *p, struct pb_fn_exit *e)
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

/* Finds a window that begins at one of the addresses in at[]. Windows without padding are
 * tried first, then those with the least padding. The window of a conditional jump needs no
 * padding, because it may reach into the code after the jump. */
static bool own_window(struct pb_placer *p, struct pb_fn_exit *e, const uint64_t *at, unsigned n)
{
	uint64_t end = e->addr + e->len;

	for (unsigned i = 0; i < n; i++)
		if ((end - at[i] >= PB_JUMP_LEN || e->kind == PB_EXIT_JCC) &&
		    pb_placer_fits(p, e, at[i], PB_JUMP_LEN, at[i])) {
			pb_placer_keep(p, e, at[i], PB_EXIT_WINDOW);
			return true;
		}
	for (unsigned i = n; i-- > 0;)
		if (end - at[i] < PB_JUMP_LEN && pb_placer_fits(p, e, at[i], PB_JUMP_LEN, at[i])) {
			pb_placer_keep(p, e, at[i], PB_EXIT_PADDED);
			return true;
		}
	return false;
}

/* Lengthens the window before the exit so that it holds the exit. */
static bool lengthen(struct pb_placer *p, struct pb_fn_exit *e)
{
	struct pb_an *an = p->an;
	const struct pb_fn *f = entry_before(an, e->addr);
	struct pb_an_window *w = p->last >= 0 ? &an->exit_windows.v[p->last] : NULL;
	unsigned jump = PB_JUMP_LEN;
	uint64_t end;
	uint32_t recipe;

	if (f && (!w || w->start <= f->addr + f->window)) {
		if (f->flags & PB_FUNC_SHARES || f->addr + f->window >= e->addr ||
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
	    !pb_placer_fits(p, e, w->start, w->via ? PB_JUMP_SHORT : jump, end))
		return false;
	pb_placer_use(an, end, w->start + p->out.head.window_len, true);
	w->len = p->out.head.window_len;
	recipe = pb_placer_recipe(an, &p->out);
	if (w->via && !an->recipes.failed)
		add_after(an, w);
	w->recipe = recipe;
	return join(p, e, w);
}

/* Collects the addresses where a window that ends with the exit may begin, and returns their
 * number. The exit's own address is the first. */
static unsigned candidates(struct pb_placer *p, const struct pb_fn_exit *e,
			   uint64_t at[MAX_CANDIDATES])
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

/* In a short function, makes the entry's window so long that it holds the exit. The stub then runs
 * all code from the entry to the exit, without a jump back to the text. A PB_SITE_CYG function has
 * no jump at its entry, because the compiler's own hooks report its calls. */
static bool in_entry(struct pb_placer *p, struct pb_fn_exit *e)
{
	const struct pb_fn *f = entry_before(p->an, e->addr);
	const struct pb_an_window *w = p->last >= 0 ? &p->an->exit_windows.v[p->last] : NULL;

	return f && f->kind != PB_SITE_CYG && (!w || w->start <= f->addr + f->window) &&
	       lengthen(p, e);
}

static void place(struct pb_placer *p, struct pb_fn_exit *e)
{
	uint64_t at[MAX_CANDIDATES];
	unsigned n;

	if (is_inside(p, e) || in_entry(p, e))
		return;
	n = candidates(p, e, at);
	if (!own_window(p, e, at, n))
		lengthen(p, e);
}

/* Adds to p->gaps the parts of the padding that are not taken. `inside` says that the padding is
 * within functions. */
static void add_gaps(struct pb_placer *p, const pb_gap_vec *from, bool inside)
{
	struct pb_an *an = p->an;

	for (size_t i = 0; i < from->n; i++) {
		struct pb_gap g = from->v[i];
		const struct pb_range *r = pb_range_find(an, g.addr);
		uint64_t at = g.addr;
		long u = inside ? pb_cfi_find(&an->cfi, at) : -1;

		/* if the unit's exits cannot be found (exits.c), a jump with an unknown target may
		 * lead into the padding */
		if (inside && (u < 0 || an->units[u]))
			continue;
		/* leave out used bytes, the first jump target, and all bytes after that target */
		for (uint64_t a = g.addr; a <= g.end; a++) {
			bool taken = a == g.end || pb_bit_test(r->used, a - r->addr) ||
				     pb_sequences_meet(an, a, a + 1);
			bool target = a < g.end && pb_bit_test(r->reached, a - r->addr);

			if (!taken && !target)
				continue;
			if (a - at >= PB_JUMP_LEN)
				pb_vec_push(&p->gaps, (struct pb_gap){ at, a });
			if (target)
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

/* Returns a slot that lies in padding, within reach of the window's short jump. Returns 0 if there
 * is none. */
static uint64_t padding_slot(struct pb_placer *p, uint64_t window)
{
	struct pb_gap *g = p->gaps.v;

	while (p->gap < p->gaps.n && g[p->gap].end + BELOW < window + PB_JUMP_LEN)
		p->gap++;
	for (size_t i = p->gap; i < p->gaps.n && g[i].addr <= window + ABOVE; i++) {
		uint64_t slot = g[i].addr;

		if (slot + BELOW < window)
			slot = window - BELOW;
		if (slot + PB_JUMP_LEN > g[i].end ||
		    pb_placer_used(p->an, slot, slot + PB_JUMP_LEN))
			continue;
		g[i].addr = slot + PB_JUMP_LEN;
		return slot;
	}
	return 0;
}

/* Returns the address of code that can be displaced for a slot within reach of the window, or 0.
 * *second is the window of the displaced code. The first five bytes of the displaced code become a
 * jump to its copy, which is in the stub of the exit's window. The next five bytes become the
 * slot. */
static uint64_t code_slot(struct pb_placer *p, uint64_t window, struct pb_window_out *second)
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
		if (!pb_bit_test(r->starts, at - r->addr) ||
		    pb_placer_used(an, at, at + PB_CODE_SLOT_LEN))
			continue;
		u = pb_cfi_find(&an->cfi, at);
		if (u < 0 || an->units[u] || !pb_placer_alive(p, at, (uint32_t)u) ||
		    !pb_code_slot_fits(an, at, second) ||
		    pb_placer_used(an, at, at + second->head.window_len))
			continue;
		return at;
	}
	return 0;
}

/* Finds a window for a short jump, and a slot: in code if in_code is true, otherwise in padding. On
 * failure e->why says what was missing. */
static bool short_window(struct pb_placer *p, struct pb_fn_exit *e, bool in_code)
{
	struct pb_an *an = p->an;
	struct pb_window_out second;
	struct pb_an_window *w;
	uint64_t at[MAX_CANDIDATES], slot;
	unsigned n = candidates(p, e, at);

	e->why = PB_INEXIT_SHORT;
	for (unsigned i = 0; i < n; i++) {
		if (!pb_placer_fits(p, e, at[i], PB_JUMP_SHORT, at[i]))
			continue;
		e->why = PB_INEXIT_NO_SLOT;
		/* mark the window as taken, so that the slot doesn't lie in it */
		pb_placer_use(an, at[i], at[i] + p->out.head.window_len, true);
		slot = in_code ? code_slot(p, at[i], &second) : padding_slot(p, at[i]);
		if (!slot) {
			pb_placer_use(an, at[i], at[i] + p->out.head.window_len, false);
			continue;
		}
		pb_placer_keep(p, e, at[i], in_code ? PB_EXIT_CODE_SLOT : PB_EXIT_PADDING_SLOT);
		w = &an->exit_windows.v[p->last];
		if (in_code)
			slot += PB_JUMP_LEN;
		w->via = (int16_t)(slot - at[i]);
		if (in_code) {
			w->second_len = second.head.window_len;
			pb_placer_use(an, slot - PB_JUMP_LEN, slot - PB_JUMP_LEN + w->second_len,
				      true);
			pb_placer_recipe(an, &second);
		} else {
			pb_placer_use(an, slot, slot + PB_JUMP_LEN, true);
			add_bytes(an, pb_range_find(an, slot), slot);
		}
		return true;
	}
	return false;
}

static void short_windows(struct pb_placer *p, const bool *wanted)
{
	struct pb_an *an = p->an;

	add_gaps(p, &an->gaps, false);
	add_gaps(p, &an->pads, true);
	pb_vec_sort(&p->gaps, by_addr);
	for (size_t i = 0; i < an->exits.n; i++)
		if (an->exits.v[i].exit && wanted[an->exits.v[i].unit] && !an->exits.v[i].how)
			short_window(p, &an->exits.v[i], false);
	/* From this point, an exit without a window must not be displaced for another exit's slot.
	 * If an exit is displaced for an entry's slot, that exit gets no window. */
	for (size_t i = 0; i < an->exits.n; i++) {
		struct pb_fn_exit *e = &an->exits.v[i];

		if (!e->exit || e->how)
			continue;
		e->displaced = pb_placer_used(an, e->addr, e->addr + e->len);
		pb_placer_use(an, e->addr, e->addr + e->len, true);
	}
	for (size_t i = 0; i < an->exits.n; i++) {
		struct pb_fn_exit *e = &an->exits.v[i];

		if (!e->exit || !wanted[e->unit] || e->how || e->displaced)
			continue;
		pb_placer_use(an, e->addr, e->addr + e->len, false);
		if (!short_window(p, e, true) && !pb_exit_share(p, e))
			pb_placer_use(an, e->addr, e->addr + e->len, true);
	}
}

int pb_exit_windows_make(struct pb_an *an, const bool *wanted)
{
	struct pb_placer p = { .an = an, .last = -1 };

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
