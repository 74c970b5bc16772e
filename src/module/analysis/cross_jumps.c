/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Some jumps leave the code of their FDE. This file sorts these jumps by their targets, and finds
 * the jumps to a given target. exits.c needs all jumps to a piece of code that has no name. They
 * show whether the piece is a function, or a part of another function.
 */
#include "module/analysis/stages.h"

static int by_target(const void *a, const void *b)
{
	const struct pb_cross_jump *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

size_t pb_cross_jump_lower(const struct pb_an *an, uint64_t to)
{
	size_t low = 0, high = an->cross_jumps.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (an->cross_jumps.v[mid].to < to)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void pb_cross_jumps_sort(struct pb_an *an)
{
	pb_vec_sort(&an->cross_jumps, by_target);
}
