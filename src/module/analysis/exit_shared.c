/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes shared jumps for exit_windows.c. They serve a `ret` of one byte that has no room for a
 * jump.
 *
 *   first site    e9			jmp rel32, where rel32 = e9 d0 d1 d2
 *   second site   e9 d0 d1 d2 d3	jmp rel32
 *
 * The first jump replaces the `ret`, and the second jump replaces the code after the `ret`. The
 * first four bytes of the second jump are the displacement of the first jump (abi/analysis.h,
 * struct pb_recipe). So a second jump must follow the `ret`. For a SHARED window, the code after
 * the `ret` is displaced to make room for the second jump. For a NEXT window, the second jump is
 * the jump of an entry or of another window of exits. If the second jump belongs to another window
 * of exits (`on`), both windows must be patched. So a function that needs the NEXT window lists
 * both.
 */
#include "abi/analysis_access.h"
#include "module/analysis/exit_shared.h"

/* Displaces the code after the exit to put the second jump there. */
static bool share_with_code(struct pb_placer *p, struct pb_fn_exit *e)
{
	struct pb_an *an = p->an;
	uint64_t next = e->addr + e->len;
	const struct pb_range *r = pb_range_find(an, next);
	long u = pb_cfi_find(&an->cfi, next);
	struct pb_window_out second;
	struct pb_an_window *w;

	if (!r || u < 0 || an->units[u] ||
	    !pb_bit_test(r->starts, next - r->addr) || !pb_placer_alive(p, next, (uint32_t)u) ||
	    pb_placer_endbr(an, next) || !pb_second_site_fits(an, next, &second) ||
	    pb_placer_used(an, e->addr, next + second.head.window_len) ||
	    pb_window_at(an, e->addr, e->addr, PB_JUMP_SHARED, &p->out))
		return false;
	pb_placer_keep(p, e, e->addr, PB_EXIT_SHARED);
	w = &an->exit_windows.v[p->last];
	w->second_len = second.head.window_len;
	pb_placer_use(an, next, next + w->second_len, true);
	pb_placer_recipe(an, &second);
	return true;
}

/* Uses the jump of the next function's entry as the second jump. */
static bool share_with_entry(struct pb_placer *p, struct pb_fn_exit *e)
{
	struct pb_an *an = p->an;
	uint64_t next = e->addr + e->len;
	long i = pb_fn_lower(an, next);
	const struct pb_fn *f = i >= 0 ? &an->fns.v[i] : NULL;

	if (!f || f->addr != next || f->refused || f->via || f->window ||
	    f->kind == PB_SITE_CYG || f->flags & PB_FUNC_SHARES ||
	    pb_placer_used(an, e->addr, next) ||
	    pb_window_at(an, e->addr, e->addr, PB_JUMP_SHARED, &p->out))
		return false;
	pb_placer_keep(p, e, e->addr, PB_EXIT_NEXT);
	return true;
}

/* Returns the index of the first window of exits that begins 0 to PB_WINDOW_MAX bytes after addr,
 * where the exit `e` ends, and has a jump of five bytes. Returns -1 if there is none. *last is the
 * last exit in the window. Only the next few exits can be in such a window: those that have windows
 * are sorted by address, because units that overlap have no windows. */
static long window_after(struct pb_placer *p, const struct pb_fn_exit *e, uint64_t addr,
			 const struct pb_fn_exit **last)
{
	struct pb_an *an = p->an;
	const struct pb_fn_exit *end = an->exits.v + an->exits.n;
	long found = -1;

	*last = NULL;
	while (++e < end && e->addr < addr + 2 * PB_WINDOW_MAX) {
		const struct pb_an_window *w = e->how ? &an->exit_windows.v[e->window] : NULL;

		if (pb_exit_work(an, 1))
			return -1;
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

/* Uses the jump of another exit's window as the second jump. If that window begins later than right
 * after the exit `e`, it is extended so that it begins there. */
static bool share_with_exit(struct pb_placer *p, struct pb_fn_exit *e)
{
	struct pb_an *an = p->an;
	uint64_t next = e->addr + e->len;
	const struct pb_range *r = pb_range_find(an, next);
	const struct pb_fn_exit *last;
	struct pb_an_window *w;
	long i;

	if (!r || !pb_bit_test(r->starts, next - r->addr) || pb_placer_used(an, e->addr, next))
		return false;
	i = window_after(p, e, next, &last);
	w = i >= 0 ? &an->exit_windows.v[i] : NULL;
	if (!w || (w->start > next && pb_placer_used(an, next, w->start)))
		return false;
	if (w->start > next) {
		if (!pb_placer_fits(p, last, next, PB_JUMP_LEN, w->start + w->len))
			return false;
		pb_placer_use(an, next, w->start, true);
		w->start = next;
		w->len = p->out.head.window_len;
		w->how = p->out.padded ? PB_EXIT_PADDED : PB_EXIT_WINDOW;
		w->recipe = pb_placer_recipe(an, &p->out);
	}
	if (pb_window_at(an, e->addr, e->addr, PB_JUMP_SHARED, &p->out))
		return false;
	pb_placer_keep(p, e, e->addr, PB_EXIT_NEXT);
	if (!an->exit_windows.failed)
		an->exit_windows.v[p->last].on = (int32_t)i;
	return true;
}

bool pb_exit_share(struct pb_placer *p, struct pb_fn_exit *e)
{
	return e->len == PB_JUMP_SHARED &&
	       (share_with_code(p, e) || share_with_entry(p, e) || share_with_exit(p, e));
}
