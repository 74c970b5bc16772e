/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arithmetic on scalars: computes what is known of the result. Each operation works on the known
 * bits and on both ranges. `bits` is the width of a range, 64 or 32. If an operation can't compute
 * exact bounds, it sets wide bounds. pbv_reg_sync() then sharpens them.
 */
#include "bpf/verifier/compare.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/scalar.h"
#include "bpf/verifier/speculate.h"

static void any_signed(struct range *r, int bits)
{
	const struct range all = range_all(bits);

	r->smin = all.smin;
	r->smax = all.smax;
}

static void any_unsigned(struct range *r, int bits)
{
	const struct range all = range_all(bits);

	r->umin = all.umin;
	r->umax = all.umax;
}

/* If the unsigned bounds are still in order when they are read as signed numbers, they become the
 * signed bounds. Otherwise the signed bounds are reset. */
static void signed_as_unsigned(struct range *r, int bits)
{
	int64_t min = sign_extend(r->umin, bits), max = sign_extend(r->umax, bits);

	any_signed(r, bits);
	if (min <= max) {
		r->smin = min;
		r->smax = max;
	}
}

static bool fits(__int128 v, int bits)
{
	return bits == 64 ? v == (int64_t)v : v == (int32_t)v;
}

static void set_signed(struct range *d, __int128 min, __int128 max, int bits)
{
	any_signed(d, bits);
	if (fits(min, bits) && fits(max, bits)) {
		d->smin = (int64_t)min;
		d->smax = (int64_t)max;
	}
}

/* Sets the unsigned bounds of a sum or difference. If both bounds wrap around, all values between
 * them wrap around, too. If neither bound wraps around, no value does. In both cases the bounds
 * hold. Otherwise resets the bounds. */
static void set_unsigned(struct range *d, __int128 min, __int128 max, int bits)
{
	any_unsigned(d, bits);
	if (min >> bits == max >> bits) {
		d->umin = cut_to((uint64_t)min, bits);
		d->umax = cut_to((uint64_t)max, bits);
	}
}

static void range_add(struct range *d, const struct range *s, int bits)
{
	set_signed(d, (__int128)d->smin + s->smin, (__int128)d->smax + s->smax, bits);
	set_unsigned(d, (__int128)d->umin + s->umin, (__int128)d->umax + s->umax, bits);
}

void pbv_scalar_add(struct reg *d, const struct reg *s)
{
	range_add(&d->low, &s->low, 32);
	range_add(&d->wide, &s->wide, 64);
	d->var = tnum_add(d->var, s->var);
}

static void range_sub(struct range *d, const struct range *s, int bits)
{
	set_signed(d, (__int128)d->smin - s->smax, (__int128)d->smax - s->smin, bits);
	set_unsigned(d, (__int128)d->umin - s->umax, (__int128)d->umax - s->umin, bits);
}

/* The least and the greatest product of two intervals are products of their ends. */
static void range_mul(struct range *d, const struct range *s, int bits)
{
	const __int128 ends[] = { (__int128)d->smin * s->smin, (__int128)d->smin * s->smax,
		(__int128)d->smax * s->smin,
				  (__int128)d->smax * s->smax };
	unsigned __int128 most = (unsigned __int128)d->umax * s->umax;
	__int128 min = ends[0], max = ends[0];

	for (int i = 1; i < 4; i++) {
		min = ends[i] < min ? ends[i] : min;
		max = ends[i] > max ? ends[i] : max;
	}
	set_signed(d, min, max, bits);
	if (most >> bits) {
		any_unsigned(d, bits);
	} else {
		d->umin *= s->umin;
		d->umax = (uint64_t)most;
	}
}

/* Most of the bounds are derived from t, the known bits of the result. */
static void range_bitwise(struct range *d, const struct range *s, struct tnum t, unsigned op,
			  int bits)
{
	d->umin = op == BPF_OR && d->umin < s->umin ? s->umin : d->umin;
	d->umax = d->umax < s->umax ? d->umax : s->umax;
	if (op != BPF_OR)
		d->umin = t.value;
	if (op != BPF_AND)
		d->umax = tnum_max(t);
	signed_as_unsigned(d, bits);
}

static void bitwise(struct reg *d, const struct reg *s, unsigned op)
{
	d->var = op == BPF_AND ? tnum_and(d->var, s->var) : op == BPF_OR ? tnum_or(d->var, s->var) :
		 tnum_xor(d->var, s->var);
	if (tnum_is_const(tnum_low(d->var)))
		pbv_reg_known_low(d, (uint32_t)d->var.value);
	else
		range_bitwise(&d->low, &s->low, tnum_low(d->var), op, 32);
	if (tnum_is_const(d->var)) {
		pbv_reg_known_value(d, d->var.value);
		return;
	}
	range_bitwise(&d->wide, &s->wide, d->var, op, 64);
	pbv_reg_learn_bits(d);
}

/* ---- shifts by a known number that is less than the width ----------------------------------- */

static void range_lsh(struct range *d, unsigned by, int bits)
{
	any_signed(d, bits);
	if (by >= (unsigned)bits || d->umax > 1ull << (bits - 1 - (int)by)) {
		any_unsigned(d, bits);
	} else {
		d->umin <<= by;
		d->umax <<= by;
	}
}

static void lsh64(struct reg *d, unsigned by)
{
	int64_t smin = d->low.smin, smax = d->low.smax;

	range_lsh(&d->wide, by, 64);
	if (by == 32) {
		/* As the kernel does, sets the signed bounds to the shifted bounds of the low half,
		 * because a shift by 32 is often the first step of a sign extension of the low
		 * half. */
		d->wide.smin = (int64_t)((uint64_t)smin << 32);
		d->wide.smax = (int64_t)((uint64_t)smax << 32);
	}
	range_lsh(&d->low, by, 32);
	d->var = tnum_lsh(d->var, by);
	pbv_reg_learn_bits(d);
}

static void lsh32(struct reg *d, unsigned by)
{
	range_lsh(&d->low, by, 32);
	d->var = tnum_low(tnum_lsh(tnum_low(d->var), by));
	d->wide = range_all(64);
	pbv_range_learn_bits(&d->low, d->var, 32);
}

static void rsh(struct reg *d, unsigned by, int bits)
{
	struct range *r = bits == 64 ? &d->wide : &d->low;

	any_signed(r, bits);
	r->umin >>= by;
	r->umax >>= by;
	d->var = tnum_rsh(bits == 64 ? d->var : tnum_low(d->var), by);
	if (bits == 64) {
		/* bits of the upper half move into the low half; the range `low` says nothing about
		 * these bits */
		d->low = range_all(32);
		pbv_reg_learn_bits(d);
	} else {
		d->wide = range_all(64);
		pbv_range_learn_bits(&d->low, d->var, 32);
	}
}

static void arsh(struct reg *d, unsigned by, int bits)
{
	struct range *r = bits == 64 ? &d->wide : &d->low;

	r->smin >>= by;
	r->smax >>= by;
	any_unsigned(r, bits);
	d->var = tnum_arsh(bits == 64 ? d->var : tnum_low(d->var), by, bits);
	if (bits == 64) {
		d->low = range_all(32);
		pbv_reg_learn_bits(d);
	} else {
		d->wide = range_all(64);
		pbv_range_learn_bits(&d->low, d->var, 32);
	}
}

static void shift(struct env *env, unsigned op, struct reg *d, const struct reg *s, int bits)
{
	const struct range *r = bits == 64 ? &s->wide : &s->low;
	unsigned by = (unsigned)r->umin;

	if (s->wide.umax >= (uint64_t)bits || r->umax >= (uint64_t)bits)
		pbv_reg_make_scalar(d, !env->capable);
	else if (op == BPF_LSH)
		bits == 64 ? lsh64(d, by) : lsh32(d, by);
	else if (op == BPF_RSH)
		rsh(d, by, bits);
	else
		arsh(d, by, bits);
}

static bool broken(const struct reg *s, int bits)
{
	const struct range *r = bits == 64 ? &s->wide : &s->low;
	bool known = tnum_is_const(bits == 64 ? s->var : tnum_low(s->var));

	return range_broken(r) || (known && (r->smin != r->smax || r->umin != r->umax));
}

int pbv_scalar_alu(struct env *env, const struct bpf_insn *insn, struct reg *d,
		   const struct reg *src)
{
	int bits = BPF_CLASS(insn->code) == BPF_ALU64 ? 64 : 32, err;
	unsigned op = BPF_OP(insn->code);
	const struct reg s = *src;	/* a copy, since src may be d */
	bool known = tnum_is_const(bits == 64 ? s.var : tnum_low(s.var));

	/* The result is unknown in two cases: the bounds contradict each other, so this path can't
	 * be taken; or the number of bits to shift isn't known. */
	if (broken(&s, bits) || (!known && (op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH))) {
		pbv_reg_make_scalar(d, !env->capable);
		return 0;
	}
	if (op == BPF_ADD || op == BPF_SUB) {
		err = pbv_mask_scalar(env, insn);
		if (err)
			return err;
	}
	switch (op) {
	case BPF_ADD:
		pbv_scalar_add(d, &s);
		break;
	case BPF_SUB:
		range_sub(&d->low, &s.low, 32);
		range_sub(&d->wide, &s.wide, 64);
		d->var = tnum_sub(d->var, s.var);
		break;
	case BPF_MUL:
		d->var = tnum_mul(d->var, s.var);
		range_mul(&d->low, &s.low, 32);
		range_mul(&d->wide, &s.wide, 64);
		break;
	case BPF_AND: case BPF_OR: case BPF_XOR:
		bitwise(d, &s, op);
		break;
	case BPF_LSH: case BPF_RSH: case BPF_ARSH:
		shift(env, op, d, &s, bits);
		break;
	default:
		pbv_reg_make_scalar(d, !env->capable);
		return 0;
	}
	if (bits == 32)
		pbv_reg_zero_extend(d);
	pbv_reg_sync(d);
	return pbv_check_consistent(env, d, "alu");
}

void pbv_scalar_negate(struct reg *d, int bits)
{
	const struct reg s = *d;

	d->var = tnum_sub(tnum_of(0), s.var);
	d->wide = range_of(0, 64);
	d->low = range_of(0, 32);
	range_sub(&d->wide, &s.wide, 64);
	range_sub(&d->low, &s.low, 32);
	if (bits == 32)
		pbv_reg_zero_extend(d);
	pbv_reg_sync(d);
}
