/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests what the verifier learns through the stack and through links between numbers. Linux 6.12
 * draws the same conclusions. The programs of these tests write a byte at fp - 64 plus a number.
 * The verifier accepts such a program only if it knows that the byte is in the stack, so that the
 * number is from -448 to 63. The verifier must accept good(), and refuse bad(). Most good programs
 * have a similar bad program, in which the same conclusion is wrong. The last tests are about
 * loops, a global function that isn't called, and loads that extend the sign. Their programs don't
 * write such a byte.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "verdict.h"

#define ANY()		CALL(get_prandom_u32)
#define SPILL(size, s, o)	BPF_STX_MEM(size, 10, s, o)
#define FILL(size, d, o)	BPF_LDX_MEM(size, d, 10, o)
#define AND(d, k)	BPF_ALU64_IMM(BPF_AND, d, k)
#define ADD(d, k)	BPF_ALU64_IMM(BPF_ADD, d, k)
#define MOV32(d, s)	BPF_ALU32_REG(BPF_MOV, d, s)
/* writes a byte at fp - 64 + r */
#define USE(r)		MOV(9, 10), ADD(9, -64), BPF_ALU64_REG(BPF_ADD, 9, r), \
			BPF_ST_MEM(BPF_B, 9, 0, 1)
#define END()		SET(0, 0), EXIT()

#define good(...) \
	assert_int_equal(VERDICT(SOCKET_FILTER, ((struct bpf_insn[]){ __VA_ARGS__ })), 0)
#define bad(...) \
	assert_true(VERDICT(SOCKET_FILTER, ((struct bpf_insn[]){ __VA_ARGS__ })) < 0)

/* ---- narrow spills and fills -------------------------------------------------------------- */

static const uint8_t sizes[] = { BPF_B, BPF_H, BPF_W, BPF_DW };

/* Spills and fills a number less than 64 with all sizes. The fill gets the whole number. */
static void test_sizes(void **state)
{
	for (int s = 0; s < 4; s++)
		for (int f = 0; f <= s; f++) {
			good(ANY(), AND(0, 63), SPILL(sizes[s], 0, -8), FILL(sizes[f], 6, -8),
			     USE(6), END());
			good(BPF_ST_MEM(sizes[s], 10, -8, 63), FILL(sizes[f], 6, -8),
			     USE(6), END());
			/* a fill that is larger than the spill also gets unwritten bytes; a fill
			 * that begins inside of the spill doesn't get the low bytes */
			if (f < s)
				bad(ANY(), AND(0, 63), SPILL(sizes[f], 0, -8),
				    FILL(sizes[s], 6, -8), USE(6), END());
			if (f < s)
				bad(ANY(), AND(0, 63), SPILL(sizes[s], 0, -8),
				    FILL(sizes[f], 6, -8 + (1 << f)), USE(6), END());
		}
}

/* A narrow fill gets only the low bytes. */
static void test_fill_cuts(void **state)
{
	good(ANY(), BPF_ALU64_IMM(BPF_LSH, 0, 16), BPF_ALU64_IMM(BPF_OR, 0, 7),
	     SPILL(BPF_DW, 0, -8), FILL(BPF_H, 6, -8), USE(6), END());
	bad(ANY(), BPF_ALU64_IMM(BPF_LSH, 0, 8), BPF_ALU64_IMM(BPF_OR, 0, 7), SPILL(BPF_DW, 0, -8),
	    FILL(BPF_H, 6, -8), USE(6), END());
	good(BPF_ST_MEM(BPF_W, 10, -8, -193), FILL(BPF_B, 6, -8), USE(6), END());
	bad(BPF_ST_MEM(BPF_W, 10, -8, -193), FILL(BPF_W, 6, -8), USE(6), END());
}

/* A narrow number is spilled to a part of a slot: what does the verifier know of the slot's other
 * bytes? A narrow store overwrites a part of a spilled number: the verifier must forget the
 * number. */
static void test_beside(void **state)
{
	/* the verifier still knows that these bytes are 0 */
	good(BPF_ST_MEM(BPF_DW, 10, -8, 0), ANY(), SPILL(BPF_W, 0, -8),
	     BPF_ST_MEM(BPF_H, 10, -4, 0), FILL(BPF_H, 6, -4), USE(6), END());
	good(BPF_ST_MEM(BPF_W, 10, -4, 0), ANY(), SPILL(BPF_W, 0, -8), FILL(BPF_W, 6, -4),
	     USE(6), END());
	bad(ANY(), SPILL(BPF_DW, 0, -8), AND(0, 7), SPILL(BPF_W, 0, -8), FILL(BPF_W, 6, -4),
	    USE(6), END());
	/* after a store to a part of the number, nothing is known of the number */
	bad(ANY(), AND(0, 63), SPILL(BPF_DW, 0, -8), BPF_ST_MEM(BPF_W, 10, -4, 1),
	    FILL(BPF_DW, 6, -8), USE(6), END());
	bad(ANY(), AND(0, 63), SPILL(BPF_DW, 0, -8), BPF_ST_MEM(BPF_B, 10, -7, 1),
	    FILL(BPF_W, 6, -8), USE(6), END());
}

/* All bytes of a spilled 0 are 0. If one of these bytes must be precise, the spilled number must be
 * precise, too. */
static void test_zero(void **state)
{
	for (int s = 0; s < 4; s++)
		for (int at = -8; at < 0; at += 1 << s) {
			good(BPF_ST_MEM(BPF_DW, 10, -8, 0), FILL(sizes[s], 6, at), USE(6), END());
			good(SET(7, 0), SPILL(BPF_DW, 7, -8), FILL(sizes[s], 6, at), USE(6), END());
			if (at != -8)
				bad(BPF_ST_MEM(BPF_DW, 10, -8, 1), FILL(sizes[s], 6, at),
				    USE(6), END());
		}
	flags = BPF_F_TEST_STATE_FREQ;
	bad(SET(7, 0), ANY(), BPF_JMP_IMM(BPF_JNE, 0, 0, 1), BPF_JMP_A(2), SET(7, 1),
	    BPF_ALU64_IMM(BPF_LSH, 7, 40), SPILL(BPF_DW, 7, -8), BPF_JMP_A(0), FILL(BPF_B, 6, -3),
	    BPF_ALU64_IMM(BPF_LSH, 6, 10), USE(6), END());
	bad(SET(7, 0), ANY(), BPF_JMP_IMM(BPF_JNE, 0, 0, 1), BPF_JMP_A(1), SET(7, 200),
	    SPILL(BPF_H, 7, -6), BPF_JMP_A(0), FILL(BPF_B, 6, -6), USE(6), END());
	flags = 0;
}

/* Stores a byte to an unknown place in a slot. If the byte is 0, a spilled 0 stays 0. In all other
 * cases, the spilled number becomes unknown. */
static void test_zero_somewhere(void **state)
{
	good(SET(7, 0), SPILL(BPF_DW, 7, -8), ANY(), AND(0, 7), MOV(2, 10),
	     BPF_ALU64_REG(BPF_ADD, 2, 0), BPF_STX_MEM(BPF_B, 2, 7, -8), FILL(BPF_DW, 6, -8),
	     USE(6), END());
	bad(SET(7, 0), SPILL(BPF_DW, 7, -8), ANY(), AND(0, 7), MOV(2, 10),
	    BPF_ALU64_REG(BPF_ADD, 2, 0), BPF_ST_MEM(BPF_B, 2, -8, 1), FILL(BPF_DW, 6, -8),
	    USE(6), END());
	bad(SET(7, 33), SPILL(BPF_DW, 7, -8), ANY(), AND(0, 7), MOV(2, 10),
	    BPF_ALU64_REG(BPF_ADD, 2, 0), BPF_ST_MEM(BPF_B, 2, -8, 0), FILL(BPF_DW, 6, -8),
	    BPF_ALU64_IMM(BPF_SUB, 6, 33), USE(6), END());
}

/* ---- links ----------------------------------------------------------------------------------- */

/* If neither the spill nor the fill truncates a number, the filled register is a copy of the
 * spilled register. */
static void test_copies_in_stack(void **state)
{
	good(ANY(), SPILL(BPF_DW, 0, -8), BPF_JMP_IMM(BPF_JGT, 0, 63, 5), FILL(BPF_DW, 6, -8),
	     USE(6), END());
	good(ANY(), SPILL(BPF_DW, 0, -8), FILL(BPF_DW, 6, -8), BPF_JMP_IMM(BPF_JGT, 6, 63, 4),
	     USE(0), END());
	good(ANY(), BPF_ALU32_IMM(BPF_ADD, 0, 0), SPILL(BPF_W, 0, -8),
	     BPF_JMP_IMM(BPF_JGT, 0, 63, 5), FILL(BPF_W, 6, -8), USE(6), END());
	/* the bounds of the low bytes say nothing about the whole number */
	bad(CALL(ktime_get_ns), SPILL(BPF_W, 0, -8), FILL(BPF_W, 6, -8),
	    BPF_JMP_IMM(BPF_JGT, 6, 63, 4), USE(0), END());
	bad(CALL(ktime_get_ns), SPILL(BPF_DW, 0, -8), FILL(BPF_W, 6, -8),
	    BPF_JMP_IMM(BPF_JGT, 6, 63, 4), USE(0), END());
	bad(CALL(ktime_get_ns), SPILL(BPF_DW, 0, -8), FILL(BPF_B, 6, -8),
	    BPF_JMP_IMM(BPF_JGT, 6, 63, 4), USE(0), END());
}

/* r6 is r0 plus a constant. If a branch bounds one of the two registers, the verifier adds or
 * subtracts the constant to bound the other register, too. */
static void test_constant_more(void **state)
{
	good(ANY(), MOV(6, 0), ADD(6, 4), BPF_JMP_IMM(BPF_JGT, 0, 59, 4), USE(6), END());
	bad(ANY(), MOV(6, 0), ADD(6, 4), BPF_JMP_IMM(BPF_JGT, 0, 60, 4), USE(6), END());
	good(ANY(), MOV(6, 0), ADD(0, 4), BPF_JMP_IMM(BPF_JGT, 6, 59, 4), USE(0), END());
	/* The branch bounds r6. r0 is r6 minus the constant. It may be as low as -448 */
	good(ANY(), MOV(6, 0), ADD(6, 440), BPF_JMP_IMM(BPF_JGT, 6, 63, 4), USE(0), END());
	bad(ANY(), MOV(6, 0), ADD(6, 450), BPF_JMP_IMM(BPF_JGT, 6, 63, 4), USE(0), END());
	good(ANY(), MOV(6, 0), ADD(6, 450), BPF_JMP_IMM(BPF_JGT, 6, 63, 5),
	     BPF_JMP_IMM(BPF_JLT, 6, 2, 4), USE(0), END());
	/* r6 is a copy through the stack */
	good(ANY(), SPILL(BPF_DW, 0, -8), FILL(BPF_DW, 6, -8), ADD(6, 4),
	     BPF_JMP_IMM(BPF_JGT, 0, 59, 4), USE(6), END());
	/* r6 and r7 differ from r0 by constants */
	good(ANY(), MOV(6, 0), MOV(7, 0), ADD(6, 4), ADD(7, 8), BPF_JMP_IMM(BPF_JGT, 7, 63, 5),
	     BPF_JMP_IMM(BPF_JLT, 7, 8, 4), USE(6), END());
}

/* The sum of a 32-bit addition isn't linked to the 64-bit operand. Other operations also end
 * links. */
static void test_no_link(void **state)
{
	bad(ANY(), MOV(6, 0), BPF_ALU32_IMM(BPF_ADD, 6, 4), BPF_JMP_IMM(BPF_JGT, 0, 59, 4),
	    BPF_ALU64_IMM(BPF_LSH, 6, 32), USE(6), END());
	bad(CALL(ktime_get_ns), MOV(6, 0), BPF_ALU32_IMM(BPF_ADD, 6, 4),
	    BPF_JMP_IMM(BPF_JGT, 6, 59, 4), USE(0), END());
	bad(CALL(ktime_get_ns), MOV(6, 0), ADD(6, 4), MOV32(6, 6), BPF_JMP_IMM(BPF_JGT, 6, 59, 5),
	     BPF_JMP_IMM(BPF_JLT, 6, 4, 4), USE(0), END());
	bad(CALL(ktime_get_ns), MOV32(6, 0), BPF_JMP_IMM(BPF_JGT, 6, 59, 4), USE(0), END());
	/* r6 is added to itself */
	bad(ANY(), MOV(6, 0), ADD(6, 4), BPF_ALU64_REG(BPF_ADD, 6, 6),
	    BPF_JMP_IMM(BPF_JGT, 0, 30, 4), USE(6), END());
	bad(ANY(), MOV(6, 0), MOV(7, 0), BPF_JMP_IMM(BPF_JNE, 0, 33, 5),
	    BPF_ALU64_REG(BPF_ADD, 6, 6), USE(6), END());
	/* r0 has only a lower bound, so r6 has no upper bound */
	bad(CALL(ktime_get_ns), MOV(6, 0), ADD(6, 4), BPF_JMP_IMM(BPF_JLT, 0, 59, 4),
	    USE(6), END());
}

/* Two registers are linked on both paths, but with different constants. */
static void test_links_on_other_path(void **state)
{
	struct bpf_insn p[] = {
		ANY(), MOV(8, 0), ANY(), MOV(6, 8), BPF_JMP_IMM(BPF_JNE, 0, 0, 2), ADD(6, 4),
		BPF_JMP_A(1), ADD(6, 400),
		BPF_JMP_A(0), BPF_JMP_IMM(BPF_JGT, 8, 59, 4), USE(6), END(),
	};

	flags = BPF_F_TEST_STATE_FREQ;
	assert_true(VERDICT(SOCKET_FILTER, p) < 0);
	p[7] = ADD(6, 3);
	assert_int_equal(VERDICT(SOCKET_FILTER, p), 0);
	flags = 0;
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* In each iteration of the loop, only a stack slot changes. */
static void test_count_in_stack(void **state)
{
	good(ANY(), AND(0, 0xff), SPILL(BPF_DW, 0, -8), SET(0, 0),
	     FILL(BPF_DW, 0, -8), BPF_JMP_IMM(BPF_JGT, 0, 10, 4), ADD(0, 1), SPILL(BPF_DW, 0, -8),
	     SET(0, 0), BPF_JMP_A(-6), END());
	/* without the addition, nothing changes, so the loop might never end */
	bad(ANY(), AND(0, 0xff), SPILL(BPF_DW, 0, -8), SET(0, 0),
	    FILL(BPF_DW, 0, -8), BPF_JMP_IMM(BPF_JGT, 0, 10, 4), SPILL(BPF_DW, 0, -8), SET(0, 0),
	    BPF_JMP_A(0), BPF_JMP_A(-6), END());
}

/* The program enters the loop at an instruction in the middle. */
static void test_loop_entered_in_the_middle(void **state)
{
	good(SET(0, 0), BPF_JMP_A(1), ADD(0, 1), BPF_JMP_IMM(BPF_JLT, 0, 4, -2), END());
	bad(SET(0, 0), BPF_JMP_A(1), ADD(0, 0), BPF_JMP_IMM(BPF_JLT, 0, 4, -2), END());
	lacking = ~0u;
	bad(SET(0, 0), BPF_JMP_A(1), ADD(0, 1), BPF_JMP_IMM(BPF_JLT, 0, 4, -2), END());
	lacking = 0;
}

/* If no path reaches a call of a global function, the function isn't verified. */
static void test_global_function_never_called(void **state)
{
	static const struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 5, .name = "reads", .global = true, .nr_args = 1,
		  .args = { { PB_BPF_FUNC_SCALAR, 0 } } },
	};
	struct bpf_insn p[] = {
		SET(0, 0), SET(1, 0), BPF_JMP_IMM(BPF_JEQ, 0, 0, 1), SUB(1), EXIT(),
		/* reads */
		BPF_LDX_MEM(BPF_DW, 0, 1, 0), EXIT(),
	};

	assert_int_equal(VERDICT_SUBS(SOCKET_FILTER, p, funcs), 0);
	p[0] = ANY();
	assert_true(VERDICT_SUBS(SOCKET_FILTER, p, funcs) < 0);
}

/* ---- loads that extend the sign ------------------------------------------------------------- */

#define LDSX_W(d, s, o)	I(BPF_LDX | BPF_MEMSX | BPF_W, d, s, o, 0)

/* Such a load may read a number from the context or from a socket, but not a pointer. */
static void test_signed_loads(void **state)
{
	struct bpf_insn p[] = {
		LDSX_W(0, 1, offsetof(struct __sk_buff, mark)),
		BPF_LDX_MEM(BPF_DW, 1, 1, offsetof(struct __sk_buff, sk)),
		BPF_JMP_IMM(BPF_JEQ, 1, 0, 1), LDSX_W(0, 1, offsetof(struct bpf_sock, src_ip4)),
		END(),
	};

	assert_int_equal(VERDICT(SCHED_CLS, p), 0);
	p[0].off = offsetof(struct __sk_buff, data);
	assert_int_equal(VERDICT(SCHED_CLS, p), -EACCES);
	p[0].code = BPF_LDX | BPF_MEM | BPF_W;
	assert_int_equal(VERDICT(SCHED_CLS, p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes), cmocka_unit_test(test_fill_cuts),
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_zero), cmocka_unit_test(test_zero_somewhere),
		     cmocka_unit_test(test_copies_in_stack),
		cmocka_unit_test(test_constant_more), cmocka_unit_test(test_no_link),
		     cmocka_unit_test(test_links_on_other_path),
		cmocka_unit_test(test_count_in_stack),
		cmocka_unit_test(test_loop_entered_in_the_middle),
		cmocka_unit_test(test_global_function_never_called),
		cmocka_unit_test(test_signed_loads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
