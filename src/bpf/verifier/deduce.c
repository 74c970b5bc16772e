/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A scalar is described three times (reg.h): by its known bits, by the range of the whole value,
 * and by the range of the low half. This file sharpens each description with the others, until no
 * description changes any more, or MAX_ROUNDS is reached.
 *
 * Each rule drops only values that one of the descriptions excludes. So a value stays if all three
 * descriptions allow it. tests/bpf/verifier/soundness.c tests this property. If the descriptions
 * contradict each other, no value is possible, and the rules do no harm.
 */
#include "bpf/verifier/reg.h"

/* Limit of rounds, because the sharpening of some scalars would take very long. After MAX_ROUNDS
 * rounds, the bounds may be wider than necessary, but they are still right. */
#define MAX_ROUNDS	8

/* Moves the bound to v if this narrows the range. Returns whether the bound was moved. */
static bool raise_s(int64_t *min, int64_t v)
{
	bool more = v > *min;

	*min = more ? v : *min;
	return more;
}

static bool lower_s(int64_t *max, int64_t v)
{
	bool more = v < *max;

	*max = more ? v : *max;
	return more;
}

static bool raise_u(uint64_t *min, uint64_t v)
{
	bool more = v > *min;

	*min = more ? v : *min;
	return more;
}

static bool lower_u(uint64_t *max, uint64_t v)
{
	bool more = v < *max;

	*max = more ? v : *max;
	return more;
}

static bool narrow_s(struct range *r, int64_t min, int64_t max)
{
	return raise_s(&r->smin, min) | lower_s(&r->smax, max);
}

static bool narrow_u(struct range *r, uint64_t min, uint64_t max)
{
	return raise_u(&r->umin, min) | lower_u(&r->umax, max);
}

/* ---- one range ---------------------------------------------------------------------------- */

/* The least signed number has the sign bit 1 if the known bits allow this, and 0 in all other
 * unknown bits. The greatest signed number has the sign bit 0 if the known bits allow this, and 1
 * in all other unknown bits. */
bool pbv_range_learn_bits(struct range *r, struct tnum t, int bits)
{
	uint64_t sign = 1ull << (bits - 1);

	return narrow_s(r, sign_extend(t.value | (t.mask & sign), bits),
			sign_extend(t.value | (t.mask & ~sign), bits)) |
			narrow_u(r, t.value, tnum_max(t));
}

/*
 * For numbers of the same sign, signed and unsigned order are the same. If the range contains
 * numbers of both signs, it has two pieces in unsigned order: [0, smax] and [smin, all ones]. If
 * one piece lies outside of [umin, umax], all values are in the other piece.
 */
static bool learn_sign(struct range *r, int bits)
{
	bool more = false;
	uint64_t low = cut_to((uint64_t)r->smin, bits), high = cut_to((uint64_t)r->smax, bits);

	if (sign_extend(r->umin, bits) <= sign_extend(r->umax, bits))
		more |= narrow_s(r, sign_extend(r->umin, bits), sign_extend(r->umax, bits));
	if (low <= high)
		more |= narrow_u(r, low, high);
	else if (r->umax < low)
		more |= raise_s(&r->smin, 0) | lower_u(&r->umax, high);
	else if (high < r->umin)
		more |= lower_s(&r->smax, -1) | raise_u(&r->umin, low);
	return more;
}

/* ---- the whole and its low half -------------------------------------------------------------- */

/*
 * If all values have the same upper half, their lower halves have the same order as the values.
 * There is a second case: the upper half has only two possible values, u and u + 1. Take the lower
 * halves as signed numbers. If the lower half is negative in the least value and not negative in
 * the greatest value, the lower halves have the same order as the values.
 */
static bool low_from_wide(struct range *low, const struct range *wide)
{
	const uint64_t ends[2][2] = { { wide->umin, wide->umax },
		{ (uint64_t)wide->smin, (uint64_t)wide->smax } };
	bool more = false;

	for (int i = 0; i < 2; i++) {
		uint64_t min = ends[i][0], max = ends[i][1];

		if (min >> 32 == max >> 32)
			more |= narrow_u(low, (uint32_t)min, (uint32_t)max);
		else if ((uint32_t)(min >> 32) + 1 == (uint32_t)(max >> 32) && (int32_t)min < 0 &&
			 (int32_t)max >= 0)
			more |= narrow_s(low, (int32_t)min, (int32_t)max);
	}
	return more;
}

static uint64_t with_low(uint64_t wide, uint64_t low)
{
	return wide >> 32 << 32 | low;
}

/*
 * If a value has the upper half of the least value, its lower half is at least low->umin. Every
 * value with another upper half is greater. So the upper half of the least value, with low->umin as
 * the lower half, is a lower bound. In the same way, the upper half of the greatest value, with
 * low->umax, is an upper bound. If a value fits into a signed 32-bit number, it is the sign
 * extension of its lower half. If the lower half isn't negative, the value is equal to its lower
 * half.
 */
static bool wide_from_low(struct range *wide, const struct range *low)
{
	bool more = narrow_u(wide, with_low(wide->umin, low->umin),
			     with_low(wide->umax, low->umax)) |
		    narrow_s(wide, (int64_t)with_low((uint64_t)wide->smin, low->umin),
			     (int64_t)with_low((uint64_t)wide->smax, low->umax));

	if (low->smin >= 0 && wide->smin >= INT32_MIN && wide->smax <= INT32_MAX)
		more |= narrow_s(wide, low->smin, low->smax) |
			narrow_u(wide, (uint64_t)low->smin, (uint64_t)low->smax);
	return more;
}

/* ---- all of it ----------------------------------------------------------------------------- */

bool pbv_reg_learn_bits(struct reg *r)
{
	return pbv_range_learn_bits(&r->low, tnum_low(r->var),
				    32) | pbv_range_learn_bits(&r->wide, r->var, 64);
}

static bool bits_from_ranges(struct reg *r)
{
	struct tnum wide = tnum_both(r->var, tnum_range(r->wide.umin, r->wide.umax));
	struct tnum low = tnum_both(tnum_low(wide), tnum_range(r->low.umin, r->low.umax));
	struct tnum all = tnum_or(tnum_high(wide), low);
	bool more = all.mask != r->var.mask || all.value != r->var.value;

	r->var = all;
	return more;
}

static bool allows(const struct range *r, uint64_t v, int bits)
{
	int64_t s = sign_extend(v, bits);
	uint64_t u = cut_to(v, bits);

	return r->smin <= s && s <= r->smax && r->umin <= u && u <= r->umax;
}

void pbv_reg_sync(struct reg *r)
{
	bool more = true;

	if (tnum_is_const(r->var) && allows(&r->wide, r->var.value, 64) &&
	    allows(&r->low, r->var.value, 32)) {
		pbv_reg_known_value(r, r->var.value);
		return;
	}
	pbv_reg_learn_bits(r);
	for (int i = 0; more && i < MAX_ROUNDS; i++) {
		more = learn_sign(&r->wide, 64) | low_from_wide(&r->low, &r->wide);
		more |= learn_sign(&r->low, 32) | wide_from_low(&r->wide, &r->low);
		more |= bits_from_ranges(r);
		more |= pbv_reg_learn_bits(r);
	}
}
