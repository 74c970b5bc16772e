/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Jumps from one range of code to another, by where they lead. */
#include "module/analysis/stages.h"

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

void pb_leaps_sort(struct pb_an *an)
{
	pb_vec_sort(&an->leaps, by_target);
}
