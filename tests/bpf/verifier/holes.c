/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests unsafe programs that the verifier of Linux 6.1 accepts. Also tests programs for which that
 * verifier needs much time, and ours must not. Later kernels refuse most of the unsafe programs.
 * Most programs have a harmless variant. A test's name says what its program does.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "verdict.h"

/* ---- copies of scalars ---------------------------------------------------------------- */

/* A branch bounds r7. On one path r7 is a copy of r6, so r6 is bounded, too. On the other path r7
 * isn't a copy. */
static void test_no_copy_on_other_path(void **state)
{
	struct bpf_insn p[] = {
		CALL(ktime_get_ns), MOV(6, 0), CALL(ktime_get_ns), MOV(7, 0),
		BPF_JMP_REG(BPF_JGT, 6, 7, 1),
		MOV(7, 6),
		BPF_JMP_IMM(BPF_JGT, 7, 4, 4),
		MOV(9, 10), BPF_ALU64_REG(BPF_ADD, 9, 6), BPF_ST_MEM(BPF_B, 9, -8, 1), BPF_JMP_A(0),
		SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT(SOCKET_FILTER, p), -EINVAL);
	p[4] = BPF_JMP_A(0);
	assert_int_equal(VERDICT(SOCKET_FILTER, p), 0);
}

/* The program spills the low byte of r6, and fills the byte with sign extension. So the filled
 * value isn't a copy of r6. */
static void test_signed_fill_is_no_copy(void **state)
{
	const struct bpf_insn p[] = {
		CALL(ktime_get_ns), MOV(5, 0), MOV(6, 0), CALL(ktime_get_ns), MOV(5, 0), MOV(7, 6),
		BPF_JMP_IMM(BPF_JNE, 6, 0xff, 7),
		BPF_STX_MEM(BPF_B, 10, 6, -8), LDSX_B(8, 10, -8),
		BPF_JMP_REG(BPF_JEQ, 7, 5, 0),
		MOV(9, 10), BPF_ALU64_IMM(BPF_ADD, 9, -512), BPF_ALU64_REG(BPF_ADD, 9, 8),
		BPF_ST_MEM(BPF_B, 9, 0, 1), SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT(SOCKET_FILTER, p), -EACCES);
}

/* In a loop, the offset of a store comes from another register than in the loop's last iteration.
 * The walk that marks precise values must cross the first iteration, which begins where a state was
 * kept. */
static void test_first_iteration(void **state)
{
	struct bpf_insn p[] = {
		CALL(get_prandom_u32), SET(7, 0), BPF_JMP_IMM(BPF_JEQ, 7, 1, 0),
		SET(1, 0), SET(5, 0), SET(2, 4096),
		BPF_JMP_IMM(BPF_JEQ, 0, 7, 3), SET(2, -8), SET(8, 0), SET(8, 0),
		MOV(3, 1), MOV(1, 2), BPF_ALU64_IMM(BPF_ADD, 5, 1),
		BPF_JMP_IMM(BPF_JNE, 5, 2, -4),
		MOV(4, 10), BPF_ALU64_REG(BPF_ADD, 4, 3), BPF_ST_MEM(BPF_B, 4, 0, 0),
		SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT(KPROBE, p), -EACCES);
	p[5].imm = -16;
	assert_int_equal(VERDICT(KPROBE, p), 0);
}

/* A number is spilled through r10 and filled through another register. The verifier must mark the
 * number's origin as precise. */
static void test_fill_by_another_register(void **state)
{
	struct bpf_insn p[] = {
		CALL(get_prandom_u32), SET(7, 400), BPF_JMP_IMM(BPF_JEQ, 0, 0, 1), SET(7, 4),
		BPF_STX_MEM(BPF_DW, 10, 7, -8), BPF_JMP_A(0),
		SET(7, 0), MOV(2, 10), SET(4, 1), SET(5, 2), BPF_JMP_A(0),
		SET(4, 1), SET(5, 2), SET(4, 1), SET(5, 2), SET(4, 1), SET(5, 2), BPF_JMP_A(0),
		BPF_LDX_MEM(BPF_DW, 3, 2, -8), MOV(9, 10), BPF_ALU64_IMM(BPF_ADD, 9, -64),
		BPF_ALU64_REG(BPF_ADD, 9, 3), BPF_ST_MEM(BPF_B, 9, 0, 1),
		SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT(SOCKET_FILTER, p), -EACCES);
	p[1] = SET(7, 40);
	assert_int_equal(VERDICT(SOCKET_FILTER, p), 0);
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static const struct pb_bpf_func with_callback[] = { { .insn = 0, .name = "main" },
						    { .insn = 17, .name = "callback" } };

/* i begins at 0. Each iteration of bpf_loop adds step to i. After the loop, the program writes byte
 * i of a 16-byte buffer. If `used` is false, the program writes byte 0 instead. If `iterations` is
 * 0, the number of iterations is unknown. */
static int count_up(int iterations, int step, bool used)
{
	struct bpf_insn p[] = {
		BPF_ST_MEM(BPF_DW, 10, -8, 0), BPF_ST_MEM(BPF_DW, 10, -16, 0),
		CALL(get_prandom_u32),
		iterations ? SET(1, iterations) : MOV(1, 0),
		FUNC(2, 12), MOV(3, 10), BPF_ALU64_IMM(BPF_ADD, 3, -8), SET(4, 0), CALL(loop),
		BPF_LDX_MEM(BPF_DW, 1, 10, -8),
		used ? BPF_JMP_A(0) : SET(1, 0),
		MOV(2, 10), BPF_ALU64_REG(BPF_ADD, 2, 1), BPF_ST_MEM(BPF_B, 2, -16, 1),
		SET(0, 0), EXIT(),
		/* callback */
		BPF_LDX_MEM(BPF_DW, 3, 2, 0), BPF_ALU64_IMM(BPF_ADD, 3, step),
		BPF_STX_MEM(BPF_DW, 2, 3, 0), SET(0, 0), EXIT(),
	};

	return VERDICT_SUBS(SOCKET_FILTER, p, with_callback);
}

static void test_iterations_add_up(void **state)
{
	assert_int_equal(count_up(0, 1, true), -EACCES);
	assert_int_equal(count_up(20, 1, true), -EACCES);
	assert_int_equal(count_up(15, 1, true), 0);
	assert_int_equal(count_up(0, 1, false), 0);
}

/* The loop makes one iteration on one path, and seven iterations on the other path. The first
 * iteration stores 100 in a stack slot. The second iteration finds 100 in this slot, and reads
 * outside of the stack. The path with one iteration is safe, but must not prune the path with seven
 * iterations. Linux 6.18 accepts this program. */
static void test_more_iterations_on_another_path(void **state)
{
	static const struct pb_bpf_func funcs[] = { { .insn = 0, .name = "main" },
						    { .insn = 13, .name = "callback" } };
	struct bpf_insn p[] = {
		BPF_ST_MEM(BPF_DW, 10, -8, 7), CALL(get_prandom_u32), SET(1, 7),
		BPF_JMP_IMM(BPF_JEQ, 0, 5, 1), SET(1, 1),
		FUNC(2, 7), MOV(3, 10), BPF_ALU64_IMM(BPF_ADD, 3, -8), SET(4, 0), CALL(loop),
		SET(0, 0), EXIT(),
		/* callback */
		BPF_LDX_MEM(BPF_DW, 4, 2, 0), BPF_JMP_IMM(BPF_JGE, 4, 40, 3),
		BPF_ST_MEM(BPF_DW, 2, 0, 100), SET(0, 0), EXIT(),
		BPF_LDX_MEM(BPF_DW, 0, 2, 16), SET(0, 0), EXIT(),
	};

	flags = BPF_F_TEST_STATE_FREQ;
	assert_int_equal(VERDICT_SUBS(SOCKET_FILTER, p, funcs), -EACCES);
	p[2] = SET(1, 1);
	assert_int_equal(VERDICT_SUBS(SOCKET_FILTER, p, funcs), 0);
	flags = 0;
}

/* The context decides whether the loop ends. The loop begins with a call of a helper. If
 * that helper had a callback, the verifier wouldn't look for an endless loop there. It has none. */
static void test_loop_that_may_not_end(void **state)
{
	struct bpf_insn p[] = {
		MOV(6, 1), SET(7, 0),
		CALL(get_smp_processor_id), BPF_LDX_MEM(BPF_W, 7, 6, 4),
		BPF_ALU64_IMM(BPF_ADD, 7, 1), BPF_JMP_IMM(BPF_JLT, 7, 2, -4), SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT(SOCKET_FILTER, p), -EINVAL);
}

/* The loop around bpf_loop ends if the slot is 0, but the callback always sets the slot to 1. */
static void test_loop_around_callbacks(void **state)
{
	static const struct pb_bpf_func funcs[] = { { .insn = 0, .name = "main" },
						    { .insn = 13, .name = "callback" } };
	struct bpf_insn p[] = {
		BPF_ST_MEM(BPF_DW, 10, -8, 0),
		SET(1, 1), FUNC(2, 10), MOV(3, 10), BPF_ALU64_IMM(BPF_ADD, 3, -8), SET(4, 0),
		CALL(loop), BPF_LDX_MEM(BPF_DW, 1, 10, -8), BPF_JMP_IMM(BPF_JEQ, 1, 0, 2),
		BPF_ST_MEM(BPF_DW, 10, -8, 0), BPF_JMP_A(-11),
		EXIT(),
		/* callback */
		BPF_ST_MEM(BPF_DW, 2, 0, 1), SET(0, 0), EXIT(),
	};

	assert_true(VERDICT_SUBS(SOCKET_FILTER, p, funcs) < 0);
	p[11] = BPF_JMP_A(0);
	assert_int_equal(VERDICT_SUBS(SOCKET_FILTER, p, funcs), 0);
}

/* ---- called functions change the packet or the result ---------------------------------------- */

static void test_global_function_moves_packet(void **state)
{
	static const struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 13, .name = "pull", .global = true, .nr_args = 1,
		  .args = { { PB_BPF_FUNC_CTX, 0 } } },
	};
	struct bpf_insn p[] = {
		MOV(6, 1), BPF_LDX_MEM(BPF_W, 7, 6, offsetof(struct __sk_buff, data)),
		BPF_LDX_MEM(BPF_W, 8, 6, offsetof(struct __sk_buff, data_end)),
		MOV(2, 7), BPF_ALU64_IMM(BPF_ADD, 2, 8), BPF_JMP_REG(BPF_JGT, 2, 8, 4),
		MOV(1, 6), SUB(5), BPF_LDX_MEM(BPF_B, 0, 7, 0), EXIT(),
		SET(0, 0), BPF_JMP_A(0), EXIT(),
		/* pull */
		SET(2, 0), CALL(skb_pull_data), SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT_SUBS(SCHED_CLS, p, funcs), -EACCES);
	p[14] = CALL(get_hash_recalc);
	assert_int_equal(VERDICT_SUBS(SCHED_CLS, p, funcs), 0);
}

/* A call moves the packet. Then r7 isn't a packet pointer any more. Without CAP_PERFMON the program
 * must not return it as a number, because that would reveal an address. */
static void test_stale_packet_is_a_number(void **state)
{
	const struct bpf_insn p[] = {
		MOV(6, 1), BPF_LDX_MEM(BPF_W, 7, 6, offsetof(struct __sk_buff, data)),
		SET(2, 0), CALL(skb_pull_data), MOV(0, 7), EXIT(),
	};

	assert_int_equal(VERDICT(SCHED_CLS, p), 0);
	lacking = PB_BPF_CAP_PERFMON;
	assert_int_equal(VERDICT(SCHED_CLS, p), -EACCES);
	lacking = 0;
}

/* A subprogram makes a tail call, so its result may be any result of the called program. */
static void test_tail_call_returns_anything(void **state)
{
	static const struct pb_bpf_func funcs[] = { { .insn = 0, .name = "main" },
						    { .insn = 6, .name = "leave" } };
	struct bpf_insn p[] = {
		SUB(5), MOV(9, 10), BPF_ALU64_REG(BPF_ADD, 9, 0), BPF_ST_MEM(BPF_B, 9, -8, 1),
		SET(0, 0), EXIT(),
		/* leave */
		BPF_LD_IMM64_RAW(2, BPF_PSEUDO_MAP_FD, 0), SET(3, 1), CALL(tail_call),
		SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT_SUBS(SOCKET_FILTER, p, funcs), -EINVAL);
	p[9] = CALL(get_prandom_u32);
	assert_int_equal(VERDICT_SUBS(SOCKET_FILTER, p, funcs), 0);
}

/* ---- pruning ------------------------------------------------------------------------------ */

/* On one path, a stack byte is part of a pointer. On the other path, which is walked first, it is
 * part of a number. */
static void test_part_of_pointer_on_other_path(void **state)
{
	struct bpf_insn p[] = {
		BPF_STX_MEM(BPF_DW, 10, 10, -8),
		CALL(get_prandom_u32),
		BPF_JMP_IMM(BPF_JGT, 0, 7, 2),
		CALL(get_prandom_u32),
		BPF_STX_MEM(BPF_DW, 10, 0, -8),
		BPF_LDX_MEM(BPF_B, 0, 10, -8), SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT(SOCKET_FILTER, p), -EACCES);
	p[0] = BPF_ST_MEM(BPF_DW, 10, -8, 1);
	assert_int_equal(VERDICT(SOCKET_FILTER, p), 0);
}

/* A store into a dynptr makes the dynptr and its slices invalid. A helper must not write into a
 * dynptr. */
static void test_dynptr_overwritten(void **state)
{
	struct bpf_insn p[] = {
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_VALUE, 1), SET(2, 8), SET(3, 0), MOV(4, 10),
		BPF_ALU64_IMM(BPF_ADD, 4, -16), CALL(dynptr_from_mem), MOV(1, 10),
		BPF_ALU64_IMM(BPF_ADD, 1, -16), SET(2, 0), SET(3, 8), CALL(dynptr_data),
		MOV(6, 0), BPF_JMP_IMM(BPF_JEQ, 6, 0, 2),
		BPF_ST_MEM(BPF_B, 10, -5, 1),
		BPF_LDX_MEM(BPF_B, 7, 6, 0), SET(0, 0), EXIT(),
	}, q[] = {
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_VALUE, 1), SET(2, 8), SET(3, 0), MOV(4, 10),
		BPF_ALU64_IMM(BPF_ADD, 4, -16), CALL(dynptr_from_mem), MOV(1, 10),
		BPF_ALU64_IMM(BPF_ADD, 1, -16), SET(2, 8), CALL(get_current_comm),
		SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT(KPROBE, p), -EACCES);
	p[14] = BPF_ST_MEM(BPF_B, 10, -25, 1);
	assert_int_equal(VERDICT(KPROBE, p), 0);
	assert_int_equal(VERDICT(KPROBE, q), -EACCES);
	q[8] = BPF_ALU64_IMM(BPF_ADD, 1, -24);
	assert_int_equal(VERDICT(KPROBE, q), 0);
}

/* A pointer to a record of 256 bytes is spilled to a slot. Then the slot becomes the upper half of
 * a dynptr. What the verifier knew of the pointer must not be taken for a part of the dynptr. */
static void test_dynptr_over_spilled(void **state)
{
#define DYNPTR(off) BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_VALUE, 1), SET(2, 8), SET(3, 0), \
	MOV(4, 10), BPF_ALU64_IMM(BPF_ADD, 4, off), CALL(dynptr_from_mem)
#define SPILLED(off) BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_FD, 2), SET(2, 256), SET(3, 0), \
	CALL(ringbuf_reserve), BPF_JMP_IMM(BPF_JNE, 0, 0, 1), EXIT(), MOV(6, 0), \
	BPF_STX_MEM(BPF_DW, 10, 6, off)
#define END() MOV(1, 6), SET(2, 0), CALL(ringbuf_submit), SET(0, 0), EXIT()
	struct bpf_insn p[] = {
		SPILLED(-24), DYNPTR(-32), DYNPTR(-16),
		/* half of each dynptr */
		MOV(1, 10), BPF_ALU64_IMM(BPF_ADD, 1, -24), SET(2, 0), SET(3, 8), CALL(dynptr_data),
		END(),
	}, q[] = {
		SPILLED(-8), DYNPTR(-16),
		/* destroys the dynptr, so there may be a new one */
		BPF_ST_MEM(BPF_DW, 10, -8, 0), DYNPTR(-16),
		END(),
	};

	assert_int_equal(VERDICT(KPROBE, p), -EINVAL);
	p[24] = BPF_ALU64_IMM(BPF_ADD, 1, -32);
	assert_int_equal(VERDICT(KPROBE, p), 0);
	assert_int_equal(VERDICT(KPROBE, q), 0);
#undef DYNPTR
#undef SPILLED
#undef END
}

/* The dynptr is at one of two places, and only one of them has a dynptr. */
static void test_dynptr_at_unknown_offset(void **state)
{
	struct bpf_insn p[] = {
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_VALUE, 1), SET(2, 8), SET(3, 0), MOV(4, 10),
		BPF_ALU64_IMM(BPF_ADD, 4, -24), CALL(dynptr_from_mem),
		BPF_ST_MEM(BPF_DW, 10, -8, 1),
		CALL(get_prandom_u32), BPF_ALU64_IMM(BPF_AND, 0, 8), MOV(1, 10),
		BPF_ALU64_IMM(BPF_ADD, 1, -24), BPF_ALU64_REG(BPF_ADD, 1, 0),
		SET(2, 0), SET(3, 8), CALL(dynptr_data), SET(0, 0), EXIT(),
	}, q[] = {
		CALL(get_prandom_u32), BPF_ALU64_IMM(BPF_AND, 0, 8), MOV(4, 10),
		BPF_ALU64_IMM(BPF_ADD, 4, -24), BPF_ALU64_REG(BPF_ADD, 4, 0),
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_VALUE, 1), SET(2, 8), SET(3, 0),
		CALL(dynptr_from_mem), SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT(KPROBE, p), -EINVAL);
	p[9] = BPF_ALU64_IMM(BPF_AND, 0, 0);
	assert_int_equal(VERDICT(KPROBE, p), 0);
	assert_int_equal(VERDICT(KPROBE, q), -EINVAL);
	q[1] = BPF_ALU64_IMM(BPF_AND, 0, 0);
	assert_int_equal(VERDICT(KPROBE, q), 0);
}

/* ---- memory that must not be written --------------------------------------------------------- */

/* A helper writes a text or a stack trace to a map of constants. The verifier must refuse this
 * write, because it relies on the values of constants. */
static void test_helper_writes_constants(void **state)
{
	struct bpf_insn p[] = {
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_VALUE, 3), SET(2, 8),
		BPF_LD_IMM64_RAW(3, BPF_PSEUDO_MAP_VALUE, 3),
		SET(4, 0), SET(5, 0), CALL(snprintf), SET(0, 0), EXIT(),
	}, q[] = {
		BPF_LD_IMM64_RAW(2, BPF_PSEUDO_MAP_VALUE, 3), SET(3, 8), SET(4, 0), CALL(get_stack),
		SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT(KPROBE, p), -EACCES);
	p[0].imm = 1;
	assert_int_equal(VERDICT(KPROBE, p), 0);
	assert_int_equal(VERDICT(RAW_TRACEPOINT, q), -EACCES);
	q[0].imm = 1;
	assert_int_equal(VERDICT(RAW_TRACEPOINT, q), 0);
}

/* ---- memory that was not written ------------------------------------------------------------- */

/* Only two bytes of eight are written. Without PERFMON, the other six bytes may not be read. */
static void test_rest_of_narrow_spill(void **state)
{
	struct bpf_insn p[] = {
		SET(1, 7), BPF_ST_MEM(BPF_H, 10, -8, 14),
		I(BPF_STX | BPF_ATOMIC | BPF_DW, 10, 1, -8, BPF_AND), SET(0, 0), EXIT(),
	};

	lacking = PB_BPF_CAP_PERFMON;
	assert_int_equal(VERDICT(SOCKET_FILTER, p), -EACCES);
	p[1] = BPF_ST_MEM(BPF_DW, 10, -8, 14);
	assert_int_equal(VERDICT(SOCKET_FILTER, p), 0);
	lacking = 0;
}

/* ---- numbers that are valid only with their exact value -------------------------------------- */

/* One path passes the number 0 as a pointer. The other path passes another number, which isn't
 * valid. */
static void test_null_on_one_path(void **state)
{
	static const struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 10, .name = "reads", .global = true, .nr_args = 1,
		  .args = { { PB_BPF_FUNC_MEM, 8 } } },
	};
	struct bpf_insn p[] = {
		SET(7, 0), CALL(get_prandom_u32), BPF_JMP_IMM(BPF_JNE, 0, 0, 1), BPF_JMP_A(1),
		SET(7, 5),
		BPF_JMP_A(0), MOV(1, 7), SUB(2), SET(0, 0), EXIT(),
		/* reads */
		SET(0, 0), BPF_JMP_IMM(BPF_JEQ, 1, 0, 1), BPF_LDX_MEM(BPF_DW, 0, 1, 0), EXIT(),
	};

	flags = BPF_F_TEST_STATE_FREQ;
	assert_true(VERDICT_SUBS(SOCKET_FILTER, p, funcs) < 0);
	p[4] = SET(7, 0);
	assert_int_equal(VERDICT_SUBS(SOCKET_FILTER, p, funcs), 0);
	flags = 0;
}

/* Like test_null_on_one_path(), but the number is a helper's argument. */
static void test_null_argument_on_one_path(void **state)
{
	struct bpf_insn p[] = {
		SET(7, 0), CALL(get_prandom_u32), BPF_JMP_IMM(BPF_JNE, 0, 0, 1), BPF_JMP_A(1),
		SET(7, 5),
		BPF_JMP_A(0), MOV(1, 7), SET(2, 0), SET(3, 0), SET(4, 0), SET(5, 0),
		CALL(csum_diff), SET(0, 0), EXIT(),
	};

	flags = BPF_F_TEST_STATE_FREQ;
	assert_int_equal(VERDICT(SCHED_CLS, p), -EACCES);
	p[4] = SET(7, 0);
	assert_int_equal(VERDICT(SCHED_CLS, p), 0);
	flags = 0;
}

/* The result is in range only on the path that is walked first. */
static void test_result_on_other_path(void **state)
{
	struct bpf_insn p[] = {
		SET(7, 1), CALL(get_prandom_u32), BPF_JMP_IMM(BPF_JNE, 0, 0, 1), BPF_JMP_A(1),
		SET(7, 5),
		BPF_JMP_A(0), MOV(0, 7), EXIT(),
	};

	flags = BPF_F_TEST_STATE_FREQ;
	assert_int_equal(VERDICT(CGROUP_SKB, p), -EINVAL);
	p[4] = SET(7, 0);
	assert_int_equal(VERDICT(CGROUP_SKB, p), 0);
	flags = 0;
}

/* The stack has a dynptr on one path, and 16 arbitrary bytes on the other. */
static void test_dynptr_on_one_path(void **state)
{
	struct bpf_insn p[] = {
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_VALUE, 1), SET(2, 8), SET(3, 0), MOV(4, 10),
		BPF_ALU64_IMM(BPF_ADD, 4, -16), CALL(dynptr_from_mem),
		CALL(get_prandom_u32), BPF_JMP_IMM(BPF_JNE, 0, 0, 1), BPF_JMP_A(2),
		BPF_STX_MEM(BPF_DW, 10, 0, -8), BPF_STX_MEM(BPF_DW, 10, 0, -16),
		BPF_JMP_A(0), MOV(1, 10), BPF_ALU64_IMM(BPF_ADD, 1, -32), SET(2, 8), MOV(3, 10),
		BPF_ALU64_IMM(BPF_ADD, 3, -16), SET(4, 0), SET(5, 0), CALL(dynptr_read),
		SET(0, 0), EXIT(),
	};

	flags = BPF_F_TEST_STATE_FREQ;
	assert_int_equal(VERDICT(SOCKET_FILTER, p), -EINVAL);
	p[10] = p[11] = BPF_JMP_A(0);
	assert_int_equal(VERDICT(SOCKET_FILTER, p), 0);
	flags = 0;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* The program has no branches, so the verifier keeps no states. Every third instruction needs the
 * precise value of r6. */
static void test_walks_over_a_straight_path(void **state)
{
	enum { NR = 30000 };
	static struct bpf_insn p[NR];
	uint32_t nr = 0;

	p[nr++] = CALL(get_prandom_u32);
	p[nr++] = MOV(6, 0);
	p[nr++] = BPF_ALU64_IMM(BPF_AND, 6, 7);
	while (nr < NR - 5) {
		p[nr++] = MOV(9, 10);
		p[nr++] = BPF_ALU64_REG(BPF_ADD, 9, 6);
		p[nr++] = BPF_ST_MEM(BPF_B, 9, -64, 1);
	}
	p[nr++] = SET(0, 0);
	p[nr++] = EXIT();
	assert_int_equal(verdict(BPF_PROG_TYPE_SOCKET_FILTER, p, nr, NULL, 0), 0);
	assert_true(walked < 500ull * NR);
}

/* In each iteration, r5 has another value, and a branch depends on r5. So the verifier can't prune,
 * and has more states than its memory can hold. */
static void test_walks_without_memory_for_states(void **state)
{
	const struct bpf_insn p[] = {
		SET(5, 45),
		I(BPF_JMP | BPF_JCOND, 0, 0, 3, 0), BPF_JMP_REG(BPF_JSLT, 5, 5, 0),
		BPF_ALU64_IMM(BPF_SUB, 5, 65535), BPF_JMP_A(-4),
		SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT(SOCKET_FILTER, p), -E2BIG);
	assert_true(walked < 10ull * PB_BPF_COMPLEXITY);
}

/* There are 6 layers of 30 global functions. Each function calls all functions of the next layer.
 * That makes 30^6 call chains. */
static void test_chains_are_not_counted_one_by_one(void **state)
{
	enum { LAYERS = 6, WIDE = 30, LENGTH = WIDE + 2 };
	static struct bpf_insn p[(LAYERS * WIDE + 1) * LENGTH];
	static struct pb_bpf_func funcs[LAYERS * WIDE + 1];
	uint32_t nr = 0;
	clock_t begin = clock();

	for (int f = 0; f <= LAYERS * WIDE; f++) {
		int layer = f ? (f - 1) / WIDE + 1 : 0;

		funcs[f] = (struct pb_bpf_func){ .insn = nr, .name = "f", .global = f > 0 };
		for (int to = 0; to < WIDE && layer < LAYERS; to++, nr++)
			p[nr] = SUB((layer * WIDE + 1 + to) * LENGTH - (int)nr - 1);
		for (int n = layer < LAYERS ? 0 : WIDE; n; n--)
			p[nr++] = SET(0, 0);
		p[nr++] = SET(0, 0);
		p[nr++] = EXIT();
	}
	assert_int_equal(verdict(BPF_PROG_TYPE_SOCKET_FILTER, p, nr, funcs, LAYERS * WIDE + 1), 0);
	assert_true(clock() - begin < 5 * CLOCKS_PER_SEC);
}

/* The program has three paths. While two of them wait to be walked, the verifier must keep its
 * knowledge of the dynptr for both. */
static void test_dynptr_of_waiting_branch(void **state)
{
	struct bpf_insn p[] = {
		I(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, 2), I(0, 0, 0, 0, 0),
		SET(2, 8), SET(3, 0), MOV(4, 10),
		BPF_ALU64_IMM(BPF_ADD, 4, -16), CALL(ringbuf_reserve_dynptr),
		CALL(get_prandom_u32), BPF_JMP_IMM(BPF_JEQ, 0, 0, 7),
		BPF_JMP_IMM(BPF_JEQ, 0, 1, 12),
		MOV(1, 10), BPF_ALU64_IMM(BPF_ADD, 1, -16), SET(2, 0), CALL(ringbuf_submit_dynptr),
		SET(0, 0), EXIT(),
		MOV(1, 10), BPF_ALU64_IMM(BPF_ADD, 1, -16), SET(2, 0), CALL(ringbuf_discard_dynptr),
		SET(0, 1), EXIT(),
		MOV(1, 10), BPF_ALU64_IMM(BPF_ADD, 1, -16), SET(2, 1), CALL(ringbuf_submit_dynptr),
		SET(0, 2), EXIT(),
	};

	assert_int_equal(VERDICT(SCHED_CLS, p), 0);
	/* the path that waits longest doesn't release the dynptr */
	p[19] = SET(0, 0);
	assert_int_equal(VERDICT(SCHED_CLS, p), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_copy_on_other_path),
		cmocka_unit_test(test_signed_fill_is_no_copy),
		cmocka_unit_test(test_first_iteration),
		cmocka_unit_test(test_fill_by_another_register),
		cmocka_unit_test(test_iterations_add_up),
		cmocka_unit_test(test_more_iterations_on_another_path),
		cmocka_unit_test(test_loop_that_may_not_end),
		cmocka_unit_test(test_loop_around_callbacks),
		cmocka_unit_test(test_global_function_moves_packet),
		cmocka_unit_test(test_stale_packet_is_a_number),
		cmocka_unit_test(test_tail_call_returns_anything),
		cmocka_unit_test(test_part_of_pointer_on_other_path),
		cmocka_unit_test(test_rest_of_narrow_spill),
		cmocka_unit_test(test_null_on_one_path),
		cmocka_unit_test(test_null_argument_on_one_path),
		cmocka_unit_test(test_result_on_other_path),
		cmocka_unit_test(test_dynptr_on_one_path),
		cmocka_unit_test(test_dynptr_overwritten),
		cmocka_unit_test(test_dynptr_over_spilled),
		cmocka_unit_test(test_dynptr_at_unknown_offset),
		 cmocka_unit_test(test_helper_writes_constants),
		cmocka_unit_test(test_walks_over_a_straight_path),
		cmocka_unit_test(test_walks_without_memory_for_states),
		cmocka_unit_test(test_chains_are_not_counted_one_by_one),
		cmocka_unit_test(test_dynptr_of_waiting_branch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
