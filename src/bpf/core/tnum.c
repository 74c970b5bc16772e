/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ranges and products as tnums. */
#include "bpf/core/tnum.h"

/* Returns a tnum that includes all numbers in min ... max: its known bits are the leading bits that
 * min and max have in common. */
struct tnum tnum_range(uint64_t min, uint64_t max)
{
	uint64_t differ = min ^ max;

	if (!differ)
		return tnum_of(min);
	differ = ~0ull >> __builtin_clzll(differ);
	return (struct tnum){ min & ~differ, differ };
}

/*
 * Long multiplication. The product of the known bits is exact. To the unknown part, each bit of a
 * that is 1 adds b's unknown bits, shifted. Each unknown bit of a adds all bits of b that may be 1,
 * shifted.
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
