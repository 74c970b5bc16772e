/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Comparisons of two scalars. Decides which branch a jump takes, if that is known. Narrows the two
 * scalars to the values that are possible on each branch. A constant is a scalar with one value.
 * `bits` is 64 or 32. If bits is 32, the jump compares only the low halves, and this file narrows
 * only the bounds and known bits of the low halves.
 */
#include "bpf/verifier/compare.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/log.h"

unsigned pbv_compare_flip(unsigned op)
{
	switch (op) {
	case BPF_JGT: return BPF_JLT;
	case BPF_JLT: return BPF_JGT;
	case BPF_JGE: return BPF_JLE;
	case BPF_JLE: return BPF_JGE;
	case BPF_JSGT: return BPF_JSLT;
	case BPF_JSLT: return BPF_JSGT;
	case BPF_JSGE: return BPF_JSLE;
	case BPF_JSLE: return BPF_JSGE;
	default: return op;
	}
}

#define NOT_SET	(BPF_JSET | BPF_X)	/* the opposite of BPF_JSET */

static unsigned opposite(unsigned op)
{
	switch (op) {
	case BPF_JEQ: return BPF_JNE;
	case BPF_JNE: return BPF_JEQ;
	case BPF_JGT: return BPF_JLE;
	case BPF_JLE: return BPF_JGT;
	case BPF_JGE: return BPF_JLT;
	case BPF_JLT: return BPF_JGE;
	case BPF_JSGT: return BPF_JSLE;
	case BPF_JSLE: return BPF_JSGT;
	case BPF_JSGE: return BPF_JSLT;
	case BPF_JSLT: return BPF_JSGE;
	default: return NOT_SET;
	}
}

static struct range *range_in_bits(struct reg *r, int bits)
{
	return bits == 64 ? &r->wide : &r->low;
}

static struct tnum tnum_in_bits(const struct reg *r, int bits)
{
	return bits == 64 ? r->var : tnum_low(r->var);
}

/* ---- which branch -------------------------------------------------------------------------- */

static int which(bool yes, bool no)
{
	return yes ? 1 : no ? 0 : COMPARE_UNKNOWN;
}

static bool apart(const struct range *a, const struct range *b)
{
	return a->umin > b->umax || a->umax < b->umin || a->smin > b->smax || a->smax < b->smin;
}

/* Returns whether a and b have no value in common: a known bit differs, or two ranges are
 * disjoint. */
static bool never_equal(const struct reg *a, const struct reg *b, int bits)
{
	struct tnum s = tnum_in_bits(a, bits), t = tnum_in_bits(b, bits);

	return (s.value ^ t.value) & ~s.mask & ~t.mask || apart(&a->low, &b->low) ||
	       (bits == 64 && apart(&a->wide, &b->wide));
}

static int decide_equal(const struct reg *a, const struct reg *b, int bits)
{
	struct tnum s = tnum_in_bits(a, bits), t = tnum_in_bits(b, bits);

	return which(tnum_is_const(s) && tnum_is_const(t) &&
		     s.value == t.value, never_equal(a, b, bits));
}

static int decide_set(struct tnum a, struct tnum b)
{
	if (!tnum_is_const(a) && !tnum_is_const(b))
		return COMPARE_UNKNOWN;
	return which(a.value & b.value, !(tnum_max(a) & tnum_max(b)));
}

int pbv_compare_decide(const struct reg *a, const struct reg *b, unsigned op, int bits)
{
	const struct range *g = bits == 64 ? &a->wide : &a->low, *h = bits == 64 ? &b->wide :
				&b->low;
	int equal;

	switch (op) {
	case BPF_JEQ:
		return decide_equal(a, b, bits);
	case BPF_JNE:
		equal = decide_equal(a, b, bits);
		return equal == COMPARE_UNKNOWN ? equal : !equal;
	case BPF_JSET:
		return decide_set(tnum_in_bits(a, bits), tnum_in_bits(b, bits));
	case BPF_JGT:
		return which(g->umin > h->umax, g->umax <= h->umin);
	case BPF_JGE:
		return which(g->umin >= h->umax, g->umax < h->umin);
	case BPF_JLT:
		return which(g->umax < h->umin, g->umin >= h->umax);
	case BPF_JLE:
		return which(g->umax <= h->umin, g->umin > h->umax);
	case BPF_JSGT:
		return which(g->smin > h->smax, g->smax <= h->smin);
	case BPF_JSGE:
		return which(g->smin >= h->smax, g->smax < h->smin);
	case BPF_JSLT:
		return which(g->smax < h->smin, g->smin >= h->smax);
	default:
		return which(g->smax <= h->smin, g->smin > h->smax);
	}
}

/* ---- what a branch implies ----------------------------------------------------------------- */

static uint64_t greater(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t less(uint64_t a, uint64_t b) { return a < b ? a : b; }
static int64_t sgreater(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t sless(int64_t a, int64_t b) { return a < b ? a : b; }

static void set_bits(struct reg *r, struct tnum t, int bits)
{
	r->var = bits == 64 ? t : tnum_or(tnum_high(r->var), tnum_low(t));
}

static void are_equal(struct reg *a, struct reg *b, int bits)
{
	struct range *g = range_in_bits(a, bits), *h = range_in_bits(b, bits);
	struct tnum t = tnum_both(tnum_in_bits(a, bits), tnum_in_bits(b, bits));

	g->umin = h->umin = greater(g->umin, h->umin);
	g->umax = h->umax = less(g->umax, h->umax);
	g->smin = h->smin = sgreater(g->smin, h->smin);
	g->smax = h->smax = sless(g->smax, h->smax);
	set_bits(a, t, bits);
	set_bits(b, t, bits);
}

/* The value of r is not v. If v is at an end of the range, the range shrinks by one. */
static void is_not(struct reg *r, uint64_t v, int bits)
{
	struct range *g = range_in_bits(r, bits);
	uint64_t u = cut_to(v, bits);
	int64_t s = sign_extend(v, bits);

	g->umin += g->umin == u && u != cut_to(~0ull, bits);
	g->umax -= g->umax == u && u;
	g->smin += g->smin == s && s != range_all(bits).smax;
	g->smax -= g->smax == s && s != range_all(bits).smin;
}

/* Narrows a and b to values with a < b, or with a <= b if or_equal is set. If a new bound wraps
 * around, it narrows nothing. This does no harm: if a bound wraps around, no pair of values
 * satisfies the comparison. */
static void is_below(struct reg *a, struct reg *b, bool or_equal, int bits)
{
	struct range *g = range_in_bits(a, bits), *h = range_in_bits(b, bits);
	uint64_t most = cut_to(h->umax - !or_equal, bits),
		least = cut_to(g->umin + !or_equal, bits);

	g->umax = less(g->umax, most);
	h->umin = greater(h->umin, least);
}

static void is_below_signed(struct reg *a, struct reg *b, bool or_equal, int bits)
{
	struct range *g = range_in_bits(a, bits), *h = range_in_bits(b, bits);
	int64_t most = sign_extend((uint64_t)h->smax - !or_equal, bits);
	int64_t least = sign_extend((uint64_t)g->smin + !or_equal, bits);

	g->smax = sless(g->smax, most);
	h->smin = sgreater(h->smin, least);
}

/* If `set` is true, narrows a and b to values for which a & b is not 0. Otherwise narrows them to
 * values for which a & b is 0. If neither operand is constant, narrows nothing. If `set` is true
 * and the constant doesn't have exactly one bit, narrows nothing either. */
static void learn_test(struct reg *a, struct reg *b, bool set, int bits)
{
	struct tnum mask = tnum_in_bits(b, bits);
	struct reg *r = a;

	if (!tnum_is_const(mask)) {
		r = b;
		mask = tnum_in_bits(a, bits);
	}
	if (!tnum_is_const(mask))
		return;
	if (!set)
		set_bits(r, tnum_and(tnum_in_bits(r, bits), tnum_of(~mask.value)), bits);
	else if (mask.value && !(mask.value & (mask.value - 1)))
		set_bits(r, tnum_or(tnum_in_bits(r, bits), mask), bits);
}

/* Narrows a and b to values for which `a op b` holds. */
static void holds(struct reg *a, struct reg *b, unsigned op, int bits)
{
	switch (op) {
	case BPF_JEQ:
		are_equal(a, b, bits);
		break;
	case BPF_JNE:
		if (tnum_is_const(tnum_in_bits(b, bits)))
			is_not(a, b->var.value, bits);
		else if (tnum_is_const(tnum_in_bits(a, bits)))
			is_not(b, a->var.value, bits);
		break;
	case BPF_JSET: case NOT_SET:
		learn_test(a, b, op == BPF_JSET, bits);
		break;
	case BPF_JGT: case BPF_JGE:
		is_below(b, a, op == BPF_JGE, bits);
		break;
	case BPF_JLT: case BPF_JLE:
		is_below(a, b, op == BPF_JLE, bits);
		break;
	case BPF_JSGT: case BPF_JSGE:
		is_below_signed(b, a, op == BPF_JSGE, bits);
		break;
	case BPF_JSLT: case BPF_JSLE:
		is_below_signed(a, b, op == BPF_JSLE, bits);
		break;
	}
	pbv_reg_sync(a);
	pbv_reg_sync(b);
}

void pbv_compare_learn(struct reg *a, struct reg *b, unsigned op, bool taken, int bits)
{
	holds(a, b, taken ? op : opposite(op), bits);
}

int pbv_check_consistent(struct env *env, struct reg *r, const char *where)
{
	const struct range *w = &r->wide, *l = &r->low;

	if (!pbv_reg_contradicts(r))
		return 0;
	log(env, "REG INVARIANTS VIOLATION (%s): %s u64=[%#lx, %#lx] s64=[%#lx, %#lx] u32=[%#x, "
		 "%#x] s32=[%#x, %#x] var_off=%s\n", where, range_broken(w) ||
	    range_broken(l) ? "range bounds violation" :
	    "const tnum out of sync with range bounds", w->umin, w->umax, (uint64_t)w->smin,
	    (uint64_t)w->smax, (unsigned)l->umin, (unsigned)l->umax, (unsigned)l->smin,
	    (unsigned)l->smax, tnum_text(r->var));
	if (env->v->flags & BPF_F_TEST_REG_INVARIANTS)
		return -EFAULT;
	pbv_reg_any_value(r);
	return 0;
}
