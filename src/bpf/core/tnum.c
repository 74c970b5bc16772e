/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ranges and products as numbers some of whose bits are known. */
#include "bpf/core/tnum.h"

/* All numbers from min to max, and those that share their common prefix. */
struct tnum tnum_range(uint64_t min, uint64_t max)
{
	uint64_t differ = min ^ max;

	if (!differ)
		return tnum_of(min);
	differ = ~0ull >> __builtin_clzll(differ);
	return (struct tnum){ min & ~differ, differ };
}

/*
 * Long multiplication: the known part is exact, and each bit of a that is or may be
 * set adds what is unknown of b there.
 */
struct tnum tnum_mul(struct tnum a, struct tnum b)
{
	struct tnum unknown = tnum_of(0);
	uint64_t known = a.value * b.value;

	for (; a.value || a.mask; a = tnum_rsh(a, 1), b = tnum_lsh(b, 1)) {
		if (a.value & 1)
			unknown = tnum_add(unknown, (struct tnum){ 0, b.mask });
		else if (a.mask & 1)
			unknown = tnum_add(unknown, (struct tnum){ 0, tnum_max(b) });
	}
	return tnum_add(tnum_of(known), unknown);
}
