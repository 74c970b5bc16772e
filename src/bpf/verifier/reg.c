/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/base.h"
#include "base/mem.h"
#include "bpf/verifier/reg.h"

static int64_t smax(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t smin(int64_t a, int64_t b) { return a < b ? a : b; }
static uint64_t umax(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t umin(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* The least signed number has the sign, if it may, and of the rest only what it must. */
void range_learn_bits(struct range *r, struct tnum t, int bits)
{
	uint64_t sign = 1ull << (bits - 1);

	r->smin = smax(r->smin, sign_extend(t.value | (t.mask & sign), bits));
	r->smax = smin(r->smax, sign_extend(t.value | (t.mask & ~sign), bits));
	r->umin = umax(r->umin, t.value);
	r->umax = umin(r->umax, tnum_max(t));
}

/* Where all values have one sign, signed and unsigned order are the same. */
void range_learn_sign(struct range *r, int bits)
{
	if (r->smin >= 0 || r->smax < 0) {
		r->umin = umax(cut_to((uint64_t)r->smin, bits), r->umin);
		r->umax = umin(cut_to((uint64_t)r->smax, bits), r->umax);
		r->smin = sign_extend(r->umin, bits);
		r->smax = sign_extend(r->umax, bits);
	} else if (sign_extend(r->umax, bits) >= 0) {
		/* none is negative: the signed minimum says nothing */
		r->smin = sign_extend(r->umin, bits);
		r->umax = umin(cut_to((uint64_t)r->smax, bits), r->umax);
		r->smax = sign_extend(r->umax, bits);
	} else if (sign_extend(r->umin, bits) < 0) {
		r->umin = umax(cut_to((uint64_t)r->smin, bits), r->umin);
		r->smin = sign_extend(r->umin, bits);
		r->smax = sign_extend(r->umax, bits);
	}
}

void reg_learn_bits(struct reg *r)
{
	range_learn_bits(&r->low, tnum_low(r->var), 32);
	range_learn_bits(&r->wide, r->var, 64);
}

void reg_sync(struct reg *r)
{
	struct tnum wide, low;

	reg_learn_bits(r);
	range_learn_sign(&r->low, 32);
	range_learn_sign(&r->wide, 64);
	wide = tnum_both(r->var, tnum_range(r->wide.umin, r->wide.umax));
	low = tnum_both(tnum_low(wide), tnum_range(r->low.umin, r->low.umax));
	r->var = tnum_or(tnum_high(wide), low);
	reg_learn_bits(r);
}

void reg_known_value(struct reg *r, uint64_t v)
{
	r->var = tnum_of(v);
	r->wide = range_of(v, 64);
	r->low = range_of(v, 32);
}

void reg_known_low(struct reg *r, uint32_t v)
{
	r->var = tnum_or(tnum_high(r->var), tnum_of(v));
	r->low = range_of(v, 32);
}

void reg_any_value(struct reg *r)
{
	r->wide = range_all(64);
	r->low = range_all(32);
}

void reg_make(struct reg *r, enum reg_type type, unsigned flags)
{
	memset(r, 0, offsetof(struct reg, var));
	r->type = (uint8_t)type;
	r->flags = (uint8_t)flags;
	reg_known_value(r, 0);
}

void reg_make_scalar(struct reg *r, bool precise)
{
	memset(r, 0, offsetof(struct reg, var));
	r->type = SCALAR;
	r->var = TNUM_UNKNOWN;
	reg_any_value(r);
	r->frame = 0;
	r->precise = precise;
}

void reg_make_const(struct reg *r, uint64_t v)
{
	reg_make(r, SCALAR, 0);
	reg_known_value(r, v);
}

void reg_make_none(struct reg *r, bool precise)
{
	reg_make_scalar(r, precise);
	r->type = NOT_INIT;
}

void reg_copy(struct reg *dst, const struct reg *src)
{
	uint16_t parent = dst->parent;
	uint8_t live = dst->live;

	*dst = *src;
	dst->parent = parent;
	dst->live = live;
}

/* The whole is the low half: its signed bounds hold if they have no sign. */
static void assign_low(struct reg *r)
{
	r->wide.umin = r->low.umin;
	r->wide.umax = r->low.umax;
	if (r->low.smin >= 0 && r->low.smax >= 0) {
		r->wide.smin = r->low.smin;
		r->wide.smax = r->low.smax;
	} else {
		r->wide.smin = 0;
		r->wide.smax = UINT32_MAX;
	}
}

void reg_zero_extend(struct reg *r)
{
	r->var = tnum_low(r->var);
	assign_low(r);
}

void reg_whole_from_low(struct reg *r)
{
	if (tnum_is(tnum_high(r->var), 0))
		assign_low(r);
	else
		r->wide = range_all(64);
	reg_sync(r);
}

void reg_low_from_whole(struct reg *r)
{
	r->low = range_all(32);
	if (r->wide.smin >= INT32_MIN && r->wide.smax <= INT32_MAX &&
	    r->wide.smin <= INT32_MAX && r->wide.smax >= INT32_MIN) {
		r->low.smin = r->wide.smin;
		r->low.smax = r->wide.smax;
	}
	if (r->wide.umin <= UINT32_MAX && r->wide.umax <= UINT32_MAX) {
		r->low.umin = r->wide.umin;
		r->low.umax = r->wide.umax;
	}
	reg_sync(r);
}

void reg_cut(struct reg *r, int bytes)
{
	uint64_t keep = (1ull << bytes * 8) - 1;

	r->var = tnum_cut(r->var, bytes);
	if ((r->wide.umin & ~keep) == (r->wide.umax & ~keep)) {
		r->wide.umin &= keep;
		r->wide.umax &= keep;
	} else {
		r->wide.umin = 0;
		r->wide.umax = keep;
	}
	r->wide.smin = (int64_t)r->wide.umin;
	r->wide.smax = (int64_t)r->wide.umax;
	if (bytes < 4)
		reg_low_from_whole(r);
}

bool reg_unbounded(const struct reg *r)
{
	const struct range wide = range_all(64), low = range_all(32);

	return tnum_is_unknown(r->var) && range_in(&r->wide, &wide) && range_in(&r->low, &low);
}

bool reg_spillable(const struct reg *r)
{
	return r->type != NOT_INIT && r->type != SCALAR && r->type != TO_DYNPTR;
}
