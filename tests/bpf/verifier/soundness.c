/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks that the verifier's deductions about scalars are true. A description says which values a
 * register may have. For all values that the operands' descriptions allow, the result's description
 * must allow the result. A comparison of two numbers must not take a path that the verifier
 * has excluded. On the path that the comparison takes, each operand's description must allow the
 * operand's number.
 *
 * test_bits() checks the known bits with all numbers of four bits. It also checks tnum_range(),
 * with all bounds up to 63. test_edges() checks everything with descriptions of one or two numbers
 * at the edges of 8, 16, 32 and 64 bits. test_random() checks everything with random descriptions
 * of random numbers. It reads SEED and ROUNDS from the environment. The other tests check that some
 * deductions are also sharp, that is, that bounds are as narrow as expected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bpf/verifier/compare.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/scalar.h"

static struct pb_bpf_verify verify;
static struct env env = { .v = &verify, .capable = true, .ptr_leaks = true, .trust_v1 = true,
			  .trust_v4 = true };
static unsigned long checks;

/* ---- descriptions and numbers ---------------------------------------------------------- */

static bool range_has(const struct range *r, uint64_t v, int bits)
{
	int64_t s = sign_extend(v, bits);
	uint64_t u = cut_to(v, bits);

	return r->smin <= s && s <= r->smax && r->umin <= u && u <= r->umax;
}

static bool has(const struct reg *r, uint64_t v)
{
	return (v & ~r->var.mask) == r->var.value && range_has(&r->wide, v, 64) &&
	       range_has(&r->low, v, 32);
}

static void show(const char *what, const struct reg *r)
{
	print_error("%s: type %u bits (%#lx; %#lx) s64 [%#lx, %#lx] u64 [%#lx, %#lx] "
		    "s32 [%#lx, %#lx] u32 [%#lx, %#lx]\n",
		    what, r->type, r->var.value, r->var.mask, (long)r->wide.smin,
		    (long)r->wide.smax, r->wide.umin, r->wide.umax, (long)r->low.smin,
		    (long)r->low.smax, r->low.umin, r->low.umax);
}

static void scalar(struct reg *r)
{
	memset(r, 0, sizeof(*r));
	pbv_reg_make_scalar(r, false);
}

static uint64_t seed;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Makes the narrowest description that allows the two numbers. */
static void describe(struct reg *r, uint64_t v, uint64_t w)
{
	int64_t s = (int64_t)v, t = (int64_t)w;
	int32_t ls = (int32_t)v, lt = (int32_t)w;
	uint32_t lu = (uint32_t)v, lw = (uint32_t)w;

	scalar(r);
	r->var = (struct tnum){ v & w, v ^ w };
	r->wide = (struct range){ s < t ? s : t, s < t ? t : s, v < w ? v : w, v < w ? w : v };
	r->low = (struct range){ ls < lt ? ls : lt, ls < lt ? lt : ls,
				 lu < lw ? lu : lw, lu < lw ? lw : lu };
}

/* ---- results of operations, and the verifier's deductions ------------------------------------ */

static const uint8_t alu_ops[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_AND, BPF_OR, BPF_XOR, BPF_LSH,
				   BPF_RSH, BPF_ARSH };
static const uint8_t jump_ops[] = { BPF_JEQ, BPF_JNE, BPF_JSET, BPF_JGT, BPF_JGE, BPF_JLT, BPF_JLE,
				    BPF_JSGT, BPF_JSGE, BPF_JSLT, BPF_JSLE };
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static uint64_t compute(unsigned op, uint64_t x, uint64_t y, int bits)
{
	unsigned by = (unsigned)y & (unsigned)(bits - 1);

	x = cut_to(x, bits);
	switch (op) {
	case BPF_ADD: x += y; break;
	case BPF_SUB: x -= y; break;
	case BPF_MUL: x *= y; break;
	case BPF_AND: x &= y; break;
	case BPF_OR: x |= y; break;
	case BPF_XOR: x ^= y; break;
	case BPF_LSH: x <<= by; break;
	case BPF_RSH: x >>= by; break;
	default: x = (uint64_t)(sign_extend(x, bits) >> by);
	}
	return cut_to(x, bits);
}

static bool holds(unsigned op, uint64_t x, uint64_t y, int bits)
{
	int64_t s = sign_extend(x, bits), t = sign_extend(y, bits);

	x = cut_to(x, bits);
	y = cut_to(y, bits);
	switch (op) {
	case BPF_JEQ: return x == y;
	case BPF_JNE: return x != y;
	case BPF_JSET: return x & y;
	case BPF_JGT: return x > y;
	case BPF_JGE: return x >= y;
	case BPF_JLT: return x < y;
	case BPF_JLE: return x <= y;
	case BPF_JSGT: return s > t;
	case BPF_JSGE: return s >= t;
	case BPF_JSLT: return s < t;
	default: return s <= t;
	}
}

static void expect(bool good, const char *what, unsigned op, int bits, const struct reg *a,
		   const struct reg *b, const struct reg *out, uint64_t x, uint64_t y)
{
	checks++;
	if (good)
		return;
	print_error("%s: operation %#x of %d bits, %#lx and %#lx\n", what, op, bits, x, y);
	show("first", a);
	show("second", b);
	show("result", out);
	fail();
}

struct pair {
	uint64_t x, y;
};

static void try_alu(unsigned op, int bits, const struct reg *a, const struct reg *b,
		    const struct pair *p, size_t nr)
{
	const struct bpf_insn insn = {
		.code = (uint8_t)((bits == 64 ? BPF_ALU64 : BPF_ALU) | op | BPF_X), .src_reg = 1
	};
	struct reg out = *a;

	assert_int_equal(pbv_scalar_alu(&env, &insn, &out, b), 0);
	for (size_t i = 0; i < nr; i++)
		expect(has(&out, compute(op, p[i].x, p[i].y, bits)), "arithmetic", op, bits, a, b,
		       &out, p[i].x, p[i].y);
}

static void try_jump(unsigned op, int bits, const struct reg *a, const struct reg *b,
		     const struct pair *p, size_t nr)
{
	int way = pbv_compare_decide(a, b, op, bits);
	struct reg c[2] = { *a, *a }, d[2] = { *b, *b };

	pbv_compare_learn(&c[0], &d[0], op, false, bits);
	pbv_compare_learn(&c[1], &d[1], op, true, bits);
	for (size_t i = 0; i < nr; i++) {
		bool is = holds(op, p[i].x, p[i].y, bits);

		expect(way == COMPARE_UNKNOWN || way == is, "way", op, bits, a, b, a, p[i].x,
		       p[i].y);
		expect(has(&c[is], p[i].x), "first operand", op, bits, a, b, &c[is], p[i].x,
		       p[i].y);
		expect(has(&d[is], p[i].y), "second operand", op, bits, a, b, &d[is], p[i].x,
		       p[i].y);
		expect(!pbv_reg_contradicts(&c[is]) && !pbv_reg_contradicts(&d[is]), "consistent",
		       op, bits, a, b, &c[is], p[i].x, p[i].y);
	}
}

static void try_both(const struct reg *a, const struct reg *b, const struct pair *p, size_t nr)
{
	for (int bits = 32; bits <= 64; bits += 32) {
		for (size_t i = 0; i < COUNT(alu_ops); i++)
			try_alu(alu_ops[i], bits, a, b, p, nr);
		for (size_t i = 0; i < COUNT(jump_ops); i++)
			try_jump(jump_ops[i], bits, a, b, p, nr);
	}
}

static void try_one(const struct reg *a, uint64_t x)
{
	struct reg out;

	for (int bytes = 1; bytes <= 4; bytes *= 2) {
		int up = 64 - bytes * 8;

		out = *a;
		pbv_reg_sign_extend(&out, bytes);
		expect(has(&out, (uint64_t)((int64_t)(x << up) >> up)), "sign extended", 0,
		       bytes * 8, a, a, &out, x, 0);
		pbv_reg_zero_extend(&out);
		pbv_reg_sync(&out);
		expect(has(&out, (uint32_t)((int64_t)(x << up) >> up)), "low half, sign extended",
		       0, bytes * 8, a, a, &out, x, 0);
		out = *a;
		pbv_reg_cut(&out, bytes);
		expect(has(&out, x << up >> up), "cut", 0, bytes * 8, a, a, &out, x, 0);
	}
	for (int bits = 32; bits <= 64; bits += 32) {
		out = *a;
		pbv_scalar_negate(&out, bits);
		expect(has(&out, cut_to(-x, bits)), "negated", BPF_NEG, bits, a, a, &out, x, 0);
		for (size_t i = 0; i < COUNT(jump_ops); i++) {
			bool is = holds(jump_ops[i], x, x, bits);
			int way = pbv_compare_decide(a, a, jump_ops[i], bits);

			out = *a;
			pbv_compare_learn(&out, &out, jump_ops[i], is, bits);
			expect(has(&out, x), "with itself", jump_ops[i], bits, a, a, &out, x, x);
			/* the two registers have the same description; the verifier needn't know
			 * that they have the same value */
			expect(way == COMPARE_UNKNOWN || way == is, "way", jump_ops[i], bits, a, a,
			       a, x, x);
		}
	}
}

/* ---- known bits: all numbers of four bits ---------------------------------------------------- */

static bool bits_have(struct tnum t, uint64_t v)
{
	return (v & ~t.mask) == t.value;
}

static void try_bits(struct tnum a, struct tnum b)
{
	const struct tnum out[] = { tnum_add(a, b), tnum_sub(a, b), tnum_mul(a, b), tnum_and(a, b),
				    tnum_or(a, b), tnum_xor(a, b), tnum_both(a, b) };

	for (uint64_t x = 0; x < 16; x++)
		for (uint64_t y = 0; y < 16; y++) {
			const uint64_t v[] = { x + y, x - y, x * y, x & y, x | y, x ^ y };

			if (!bits_have(a, x) || !bits_have(b, y))
				continue;
			for (size_t i = 0; i < COUNT(v); i++)
				assert_true(bits_have(out[i], v[i]));
			assert_true(x != y || bits_have(out[6], x));
			checks++;
		}
}

static void test_bits(void **state)
{
	for (uint64_t i = 0; i < 256; i++)
		for (uint64_t j = 0; j < 256; j++) {
			struct tnum a = { i & 15, i >> 4 }, b = { j & 15, j >> 4 };

			if (!(a.value & a.mask) && !(b.value & b.mask))
				try_bits(a, b);
		}
	for (uint64_t min = 0; min < 64; min++)
		for (uint64_t max = min; max < 64; max++)
			for (uint64_t v = min; v <= max; v++)
				assert_true(bits_have(tnum_range(min, max), v));
}

/* ---- numbers at edges ------------------------------------------------------------------------ */

static const uint64_t edges[] = {
	0, 1, 2, 7, 31, 32, 63, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, INT32_MAX,
	0x80000000, 0x80000001, 0xfffffffe, UINT32_MAX, 0x100000000, 0x17fffffff, 0x180000000,
	INT64_MAX, (uint64_t)INT64_MIN, (uint64_t)INT64_MIN + 1, 0xfffffffe80000000,
	0xffffffff00000000, 0xffffffff7fffffff, 0xffffffff80000000,
	(uint64_t)-0x8001, (uint64_t)-0x81, (uint64_t)-0x80, (uint64_t)-2, (uint64_t)-1,
};
#define NR_EDGES COUNT(edges)

static void test_edges(void **state)
{
	static struct reg regs[NR_EDGES * NR_EDGES];
	static uint64_t values[NR_EDGES * NR_EDGES][2];
	size_t nr = 0;

	for (size_t i = 0; i < NR_EDGES; i++)
		for (size_t j = i; j < NR_EDGES; j++, nr++) {
			describe(&regs[nr], edges[i], edges[j]);
			values[nr][0] = edges[i];
			values[nr][1] = edges[j];
			pbv_reg_sync(&regs[nr]);
			for (int n = 0; n < 2; n++) {
				assert_true(has(&regs[nr], values[nr][n]));
				try_one(&regs[nr], values[nr][n]);
			}
		}
	for (size_t i = 0; i < nr; i++)
		for (size_t j = i % 3; j < nr; j += 3) {
			const struct pair p[] = {
				{ values[i][0], values[j][0] }, { values[i][0], values[j][1] },
				{ values[i][1], values[j][0] }, { values[i][1], values[j][1] },
			};

			try_both(&regs[i], &regs[j], p, 4);
		}
}

/* ---- random descriptions --------------------------------------------------------------------- */

/* Returns a random number: a number of few bits, a number near an edge, or any number. */
static uint64_t number(void)
{
	uint64_t v = next();

	switch (next() % 4) {
	case 0:
		return v >> next() % 64;
	case 1:
		return (uint64_t)((int64_t)v >> next() % 64);
	case 2:
		return edges[v % NR_EDGES] + (next() % 7) - 3;
	default:
		return v;
	}
}

static uint64_t mask(void)
{
	switch (next() % 5) {
	case 0:
		return 0;
	case 1:
		return ~0ull;
	case 2:
		return next() & next() & next();
	case 3:
		return ~0ull >> next() % 64;
	default:
		return next() >> next() % 64 << next() % 32;
	}
}

/* Makes random bounds that allow v. Each bound is far from v, near v, or v itself. */
static void bounds(struct range *r, uint64_t v, int bits)
{
	const struct range all = range_all(bits);
	int64_t s = sign_extend(v, bits);
	uint64_t u = cut_to(v, bits), most = cut_to(~0ull, bits);
	uint64_t d[4];

	for (int i = 0; i < 4; i++)
		d[i] = next() % 3 ? number() >> next() % 64 : ~0ull;
	r->umin = u < d[0] ? 0 : u - d[0];
	r->umax = most - u < d[1] ? most : u + d[1];
	r->smin = (uint64_t)s - (uint64_t)all.smin < d[2] ? all.smin :
		  (int64_t)((uint64_t)s - d[2]);
	r->smax = (uint64_t)all.smax - (uint64_t)s < d[3] ? all.smax :
		  (int64_t)((uint64_t)s + d[3]);
}

#define MEMBERS	6

/* Makes a random description, and some numbers that the description allows. Returns the count of
 * the numbers. */
static size_t around(struct reg *r, uint64_t *members)
{
	uint64_t v = number(), m = mask();
	struct reg before;
	size_t nr = 1;

	scalar(r);
	r->var = (struct tnum){ v & ~m, m };
	bounds(&r->wide, v, 64);
	bounds(&r->low, v, 32);
	before = *r;
	members[0] = v;
	for (int i = 0; i < 12 && nr < MEMBERS; i++) {
		const uint64_t at[] = { r->wide.umin, r->wide.umax, (uint64_t)r->wide.smin,
					(uint64_t)r->wide.smax, v,
					(v & ~0xffffffffull) | r->low.umin,
					(v & ~0xffffffffull) | r->low.umax, next() };
		uint64_t other = (at[next() % 8] + next() % 3 - 1) & r->var.mask;

		other |= r->var.value;
		if (has(r, other))
			members[nr++] = other;
	}
	if (next() % 8) {
		pbv_reg_sync(r);
		for (size_t i = 0; i < nr; i++)
			expect(has(r, members[i]), "deduced", 0, 64, &before, &before, r,
			       members[i], 0);
	}
	return nr;
}

static void test_random(void **state)
{
	unsigned long rounds = getenv("ROUNDS") ? strtoul(getenv("ROUNDS"), NULL, 0) : 150000;
	uint64_t x[MEMBERS], y[MEMBERS];
	struct reg a, b;

	seed = (getenv("SEED") ? strtoull(getenv("SEED"), NULL, 0) : 1) * 0x9e3779b97f4a7c15ull;
	for (unsigned long n = 0; n < rounds; n++) {
		size_t nx = around(&a, x), ny = around(&b, y), nr = 0;
		struct pair p[MEMBERS * MEMBERS];

		/* The verifier deduces the result of a shift only if it knows the amount. So in
		 * some rounds, the second operand is a constant. */
		if (!(next() % 4)) {
			describe(&b, next() % 70, 0);
			y[0] = b.wide.umax;
			describe(&b, y[0], y[0]);
			ny = 1;
		}
		for (size_t i = 0; i < nx; i++) {
			try_one(&a, x[i]);
			for (size_t j = 0; j < ny; j++)
				p[nr++] = (struct pair){ x[i], y[j] };
		}
		try_both(&a, &b, p, nr);
	}
	print_message("%lu checks\n", checks);
}

/* ---- deductions must also be sharp ----------------------------------------------------------- */

static void up_to(struct reg *r, uint64_t max)
{
	scalar(r);
	r->wide.umax = max;
	pbv_reg_sync(r);
}

static void alu(struct reg *d, unsigned op, const struct reg *s, int bits)
{
	const struct bpf_insn insn = {
		.code = (uint8_t)((bits == 64 ? BPF_ALU64 : BPF_ALU) | op | BPF_X), .src_reg = 1
	};

	assert_int_equal(pbv_scalar_alu(&env, &insn, d, s), 0);
}

/* Tests operations on numbers of which at most the bounds are known. Such operations are common.
 * For example, programs that compute a histogram's slot combine shift amounts by |=. */
static void test_unknown_operands(void **state)
{
	struct reg a, b;

	for (int bits = 32; bits <= 64; bits += 32) {
		up_to(&a, 16);
		up_to(&b, 8);
		alu(&a, BPF_OR, &b, bits);
		assert_int_equal(a.wide.umax, 31);
		assert_int_equal(a.wide.smin, 0);
		up_to(&a, 16);
		alu(&a, BPF_XOR, &b, bits);
		assert_int_equal(a.wide.umax, 31);
		up_to(&a, 16);
		alu(&a, BPF_MUL, &b, bits);
		assert_int_equal(a.wide.umax, 128);
		scalar(&a);
		alu(&a, BPF_AND, &b, bits);
		assert_int_equal(a.wide.umax, 8);
	}
	up_to(&a, 16);
	pbv_scalar_negate(&a, 64);
	assert_int_equal(a.wide.smin, -16);
	assert_int_equal(a.wide.smax, 0);
}

static void test_branches(void **state)
{
	struct reg a, b;

	up_to(&a, 100);
	up_to(&b, 50);
	pbv_compare_learn(&a, &b, BPF_JLT, true, 64);
	assert_int_equal(a.wide.umax, 49);
	assert_int_equal(b.wide.umin, 1);
	up_to(&a, 100);
	describe(&b, 0, 0);
	pbv_compare_learn(&a, &b, BPF_JEQ, false, 64);
	assert_int_equal(a.wide.umin, 1);
	up_to(&a, 100);
	describe(&b, 200, 300);
	assert_int_equal(pbv_compare_decide(&a, &b, BPF_JEQ, 64), 0);
	assert_int_equal(pbv_compare_decide(&a, &b, BPF_JLT, 32), 1);
	up_to(&a, 100);
	describe(&b, 96, 96);
	pbv_compare_learn(&a, &b, BPF_JSET, false, 64);
	assert_int_equal(a.wide.umax, 31);
}

static void test_halves(void **state)
{
	struct reg a, b;

	/* a 32-bit comparison bounds the whole number, because the number fits into 32 bits */
	scalar(&a);
	a.wide.smin = -100;
	a.wide.smax = 1000;
	pbv_reg_sync(&a);
	assert_int_equal(a.low.smin, -100);
	describe(&b, 10, 10);
	pbv_compare_learn(&a, &b, BPF_JSGT, true, 32);
	assert_int_equal(a.wide.smin, 11);
	assert_int_equal(a.wide.umax, 1000);
	/* the signed bounds -5 and 7, and the unsigned bound 100, together exclude negative
	 * numbers */
	scalar(&a);
	a.wide.smin = -5;
	a.wide.smax = 7;
	a.wide.umax = 100;
	pbv_reg_sync(&a);
	assert_int_equal(a.wide.smin, 0);
	assert_int_equal(a.wide.umax, 7);
	/* extends the sign of a byte whose sign bit is known */
	up_to(&a, 0xff);
	a.wide.umin = 0xf0;
	pbv_reg_sync(&a);
	pbv_reg_sign_extend(&a, 1);
	assert_int_equal(a.wide.smin, -16);
	assert_int_equal(a.wide.smax, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_unknown_operands),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_halves),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
