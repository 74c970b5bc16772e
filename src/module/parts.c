/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cold parts are no functions, but what they do counts for those that they
 * belong to: all whose code jumps into them, or else the one of their name.
 */
#include <string.h>
#include "module/module_priv.h"

#define MAX_STEPS	4	/* a part that only another part leads to */
#define MAX_WORK	(64u << 20) /* real files need thousands; a made-up one could need for ever */

static int by_target(const void *a, const void *b)
{
	const struct pb_leap *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

size_t pb_leap_lower(const struct pb_an *an, uint64_t to)
{
	size_t low = 0, high = an->leaps.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (an->leaps.v[mid].to < to)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void count(struct pb_fn *f, enum pb_own what)
{
	if (what == PB_OWN_RA_READ)
		f->nr_ra_reads++;
	else
		f->nr_cyg++;
}

/* Those that jump into the FDE's code; each counts once, as its jumps stand
 * together. */
static bool count_by_leaps(struct pb_an *an, const struct pb_fde *fde, enum pb_own what,
			   unsigned steps)
{
	const struct pb_fn *last = NULL;
	bool any = false;

	for (size_t i = pb_leap_lower(an, fde->start); i < an->leaps.n; i++) {
		const struct pb_leap *l = &an->leaps.v[i];
		struct pb_fn *f;
		long from;

		if (l->to >= fde->end || an->own_work++ > MAX_WORK)
			break;
		f = pb_fn_of(an, l->from);
		from = f ? -1 : pb_cfi_find(&an->cfi, l->from);
		if (f && f != last)
			count(f, what);
		else if (from >= 0 && steps)
			any |= count_by_leaps(an, &an->cfi.fdes.v[from], what, steps - 1);
		last = f ? f : last;
		any |= f != NULL;
	}
	return any;
}

/* foo of foo.cold. */
static void count_by_name(struct pb_an *an, uint64_t part, enum pb_own what)
{
	for (size_t i = 0; i < an->cands.n; i++) {
		const struct pb_cand *c = &an->cands.v[i];
		const char *dot = c->addr == part ? memmem(c->name, c->len, ".cold", 5) : NULL;
		size_t len = dot ? (size_t)(dot - c->name) : 0;

		an->own_work += dot ? an->fns.n : 1;
		if (an->own_work > MAX_WORK)
			return;
		for (size_t k = 0; dot && k < an->fns.n; k++) {
			const struct pb_fn *f = &an->fns.v[k];

			for (size_t n = f->cand; n < f->cand + f->nr_cands; n++)
				if (an->cands.v[n].len == len &&
				    !memcmp(an->cands.v[n].name, c->name, len))
					count(&an->fns.v[k], what);
		}
	}
}

void pb_own_count(struct pb_an *an, uint64_t addr, enum pb_own what)
{
	struct pb_fn *f = pb_fn_of(an, addr);
	long fde = f ? -1 : pb_cfi_find(&an->cfi, addr);

	if (f)
		count(f, what);
	else if (fde >= 0 && !count_by_leaps(an, &an->cfi.fdes.v[fde], what, MAX_STEPS))
		count_by_name(an, an->cfi.fdes.v[fde].start, what);
}

void pb_leaps_sort(struct pb_an *an)
{
	pb_vec_sort(&an->leaps, by_target);
}
