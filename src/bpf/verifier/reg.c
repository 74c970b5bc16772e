/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the verifier knows of a register: functions that set, copy, truncate and extend it. */
#include "base/base.h"
#include "base/mem.h"
#include "bpf/verifier/reg.h"

void pbv_reg_known_low(struct reg *r, uint32_t v)
{
	r->var = tnum_or(tnum_high(r->var), tnum_of(v));
	r->low = range_of(v, 32);
}

void pbv_reg_any_value(struct reg *r)
{
	r->wide = range_all(64);
	r->low = range_all(32);
}

void pbv_reg_make(struct reg *r, enum reg_type type, unsigned flags)
{
	memset(r, 0, offsetof(struct reg, var));
	r->type = (uint8_t)type;
	r->flags = (uint8_t)flags;
	pbv_reg_known_value(r, 0);
}

void pbv_reg_make_scalar(struct reg *r, bool precise)
{
	memset(r, 0, offsetof(struct reg, var));
	r->type = SCALAR;
	r->var = TNUM_UNKNOWN;
	pbv_reg_any_value(r);
	r->frame = 0;
	r->precise = precise;
}

void pbv_reg_make_const(struct reg *r, uint64_t v)
{
	pbv_reg_make(r, SCALAR, 0);
	pbv_reg_known_value(r, v);
}

void pbv_reg_make_none(struct reg *r, bool precise)
{
	pbv_reg_make_scalar(r, precise);
	r->type = NOT_INIT;
}

void pbv_reg_copy(struct reg *dst, const struct reg *src)
{
	uint16_t parent = dst->parent;
	uint8_t live = dst->live;

	*dst = *src;
	dst->parent = parent;
	dst->live = live;
}

/* Sets the 64-bit range to the range of the zero-extended low half. The low half's signed bounds
 * are used only if neither of them is negative. */
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

void pbv_reg_zero_extend(struct reg *r)
{
	r->var = tnum_low(r->var);
	assign_low(r);
}

void pbv_reg_cut(struct reg *r, int bytes)
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
		r->low = range_all(32);
	pbv_reg_sync(r);
}

/* Only the low half matters. In two cases the bounds of the result are the low half's old bounds,
 * sign-extended: if sign extension changes no number of the range, or if all numbers of the range
 * have the same upper bits, and have the same sign after truncation. In all other cases the bounds
 * are those of the narrow type. */
void pbv_reg_sign_extend(struct reg *r, int bytes)
{
	int bits = bytes * 8, up = 64 - bits;
	int64_t most = (int64_t)(~0ull >> (up + 1)), least = -most - 1;
	int64_t min = (int64_t)((uint64_t)r->low.smin << up) >> up,
		max = (int64_t)((uint64_t)r->low.smax << up) >> up;
	bool same_above = r->low.smin >> bits == r->low.smax >> bits && (min < 0) == (max < 0);

	if (tnum_is_const(r->var)) {
		pbv_reg_known_value(r, (uint64_t)((int64_t)(r->var.value << up) >> up));
		return;
	}
	if (same_above || (r->low.smin >= least && r->low.smax <= most)) {
		least = min;
		most = max;
	}
	r->var = TNUM_UNKNOWN;
	pbv_reg_any_value(r);
	r->wide.smin = r->low.smin = least;
	r->wide.smax = r->low.smax = most;
	pbv_reg_sync(r);
}

bool pbv_reg_contradicts(const struct reg *r)
{
	uint64_t v = r->var.value;
	const struct range wide = range_of(v, 64), low = range_of(v, 32);

	return range_broken(&r->wide) || range_broken(&r->low) ||
	       (tnum_is_const(r->var) &&
		!(range_in(&wide, &r->wide) && range_in(&r->wide, &wide))) ||
	       (tnum_is_const(tnum_low(r->var)) &&
		!(range_in(&low, &r->low) && range_in(&r->low, &low)));
}

bool pbv_reg_unbounded(const struct reg *r)
{
	const struct range wide = range_all(64), low = range_all(32);

	return tnum_is_unknown(r->var) && range_in(&r->wide, &wide) && range_in(&r->low, &low);
}

bool pbv_reg_spillable(const struct reg *r)
{
	return r->type != NOT_INIT && r->type != SCALAR && r->type != TO_DYNPTR;
}
