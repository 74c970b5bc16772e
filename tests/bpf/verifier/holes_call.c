/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * More programs like those of holes.c: they are unsafe, and the verifier must refuse them. The
 * programs call global functions, callbacks, and helpers for locks, or they compare pointers to the
 * packet. Most programs have a harmless variant.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "verdict.h"

/* ---- global functions --------------------------------------------------------------------- */

/* A global function has six parameters, but only five registers pass arguments. */
static void test_global_function_of_six(void **state)
{
	static struct pb_bpf_func funcs[3] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 9, .name = "six", .global = true, .nr_args = 6 },
	};
	struct bpf_insn p[] = {
		SET(1, 0), SET(2, 0), SET(3, 0), SET(4, 0), SET(5, 0), SET(6, 0), SUB(2),
		SET(0, 0), EXIT(),
		/* six */
		SET(0, 0), EXIT(),
	};
	const size_t nr = sizeof p / sizeof *p;

	assert_int_equal(verdict(BPF_PROG_TYPE_SOCKET_FILTER, p, nr, funcs, 2), -EINVAL);
	/* a static function only has the arguments that its callers pass */
	funcs[1].global = false;
	assert_int_equal(verdict(BPF_PROG_TYPE_SOCKET_FILTER, p, nr, funcs, 2), 0);
	funcs[1].global = true;
	funcs[1].nr_args = 5;
	assert_int_equal(verdict(BPF_PROG_TYPE_SOCKET_FILTER, p, nr, funcs, 2), 0);
}

/* A parameter of a global function has a type that such a function can't take, for example void *.
 * The function must not get a pointer as a number. */
static void test_global_function_of_other_type(void **state)
{
	static struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 5, .name = "number", .global = true, .nr_args = 1,
		  .args = { { PB_BPF_FUNC_OTHER, 0 } } },
	};
	struct bpf_insn p[] = {
		MOV(1, 10), BPF_ALU64_IMM(BPF_ADD, 1, -8), SUB(2), SET(0, 0), EXIT(),
		/* number */
		MOV(0, 1), EXIT(),
	};

	assert_int_equal(VERDICT_SUBS(SOCKET_FILTER, p, funcs), -EINVAL);
	p[0] = p[1] = SET(1, 0);
	assert_int_equal(VERDICT_SUBS(SOCKET_FILTER, p, funcs), -EINVAL);
	funcs[1].args[0].kind = PB_BPF_FUNC_SCALAR;
	assert_int_equal(VERDICT_SUBS(SOCKET_FILTER, p, funcs), 0);
}

/* A lookup in a map of maps returns a map, or NULL. A global function or a helper that takes memory
 * must not get the map, even if it takes NULL, too: it could overwrite the map's description. */
static void test_map_as_memory(void **state)
{
	static const struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 10, .name = "write", .global = true, .nr_args = 1,
		  .args = { { PB_BPF_FUNC_MEM, 4 } } },
	};
	struct bpf_insn global[] = {
		BPF_ST_MEM(BPF_W, 10, -4, 0), MOV(2, 10), BPF_ALU64_IMM(BPF_ADD, 2, -4),
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_FD, 4), CALL(map_lookup_elem), MOV(1, 0), SUB(2),
		SET(0, 0), EXIT(),
		/* write */
		BPF_JMP_IMM(BPF_JEQ, 1, 0, 1), BPF_ST_MEM(BPF_W, 1, 0, 1), SET(0, 0), EXIT(),
	};
	struct bpf_insn helper[] = {
		BPF_ST_MEM(BPF_W, 10, -4, 0), MOV(2, 10), BPF_ALU64_IMM(BPF_ADD, 2, -4),
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_FD, 4), CALL(map_lookup_elem),
		MOV(1, 0), SET(2, 4), BPF_LD_IMM64_RAW(3, BPF_PSEUDO_MAP_VALUE, 3),
		SET(4, 0), SET(5, 0), CALL(snprintf), SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT_SUBS(KPROBE, global, funcs), -EACCES);
	assert_int_equal(VERDICT(KPROBE, helper), -EACCES);
	global[3].imm = helper[3].imm = 1;	/* an array of numbers */
	assert_int_equal(VERDICT_SUBS(KPROBE, global, funcs), 0);
	assert_int_equal(VERDICT(KPROBE, helper), 0);
}

/* A global function may write the memory that it gets. So it must not get a packet that the program
 * may only read. And a pointer to the packet is of no use to it after it has moved the packet. */
static void test_packet_as_memory(void **state)
{
	static const struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 11, .name = "first", .global = true, .nr_args = 2,
		  .args = { { PB_BPF_FUNC_CTX, 0 }, { PB_BPF_FUNC_MEM_SURE, 4 } } },
	};
	struct bpf_insn p[] = {
		MOV(6, 1), BPF_LDX_MEM(BPF_W, 2, 1, offsetof(struct __sk_buff, data)),
		BPF_LDX_MEM(BPF_W, 3, 1, offsetof(struct __sk_buff, data_end)),
		MOV(4, 2), BPF_ALU64_IMM(BPF_ADD, 4, 4), SET(0, 0),
		BPF_JMP_REG(BPF_JGT, 4, 3, 3), MOV(1, 6), SUB(2), SET(0, 0), EXIT(),
		/* first */
		MOV(6, 2), SET(2, 0), CALL(get_hash_recalc), BPF_LDX_MEM(BPF_W, 0, 6, 0),
		SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT_SUBS(SCHED_CLS, p, funcs), 0);
	p[13] = CALL(skb_pull_data);
	assert_int_equal(VERDICT_SUBS(SCHED_CLS, p, funcs), -EACCES);
	p[13] = SET(0, 0);
	assert_int_equal(VERDICT_SUBS(SCHED_CLS, p, funcs), 0);
	assert_int_equal(VERDICT_SUBS(CGROUP_SKB, p, funcs), -EACCES);
}

/* ---- keys and values in other memory ------------------------------------------------------ */

static int with_record(int size, bool is_key)
{
	const struct bpf_insn p[] = {
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_FD, 2), SET(2, size), SET(3, 0),
		CALL(ringbuf_reserve), BPF_JMP_IMM(BPF_JEQ, 0, 0, 14), MOV(6, 0),
		BPF_ST_MEM(BPF_W, 10, -4, 0), MOV(2, 10), BPF_ALU64_IMM(BPF_ADD, 2, -4),
		MOV(3, 10), BPF_ALU64_IMM(BPF_ADD, 3, -32), MOV(is_key ? 2 : 3, 6),
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_FD, 1), SET(4, 0), CALL(map_update_elem),
		MOV(1, 6), SET(2, 0), CALL(ringbuf_submit), SET(0, 0), EXIT(),
	};

	return VERDICT(KPROBE, p);
}

/* A key or value may lie in a record of a ring buffer, if the record is large enough. */
static void test_key_in_record(void **state)
{
	assert_int_equal(with_record(4, true), 0);
	assert_int_equal(with_record(3, true), -EACCES);
	assert_int_equal(with_record(32, false), 0);
	assert_int_equal(with_record(31, false), -EACCES);
}

/* A global function takes the key that is in its argument's memory. */
static void test_key_in_argument(void **state)
{
	static struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 6, .name = "look", .global = true, .nr_args = 1,
		  .args = { { PB_BPF_FUNC_MEM_SURE, 4 } } },
	};
	const struct bpf_insn p[] = {
		BPF_ST_MEM(BPF_DW, 10, -8, 0), MOV(1, 10), BPF_ALU64_IMM(BPF_ADD, 1, -8), SUB(2),
		SET(0, 0), EXIT(),
		/* look */
		MOV(2, 1), BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_FD, 1), CALL(map_lookup_elem),
		SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), 0);
	funcs[1].args[0].size = 2;
	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), -EACCES);
}

/* ---- dynptrs of global functions ------------------------------------------------------------ */

/* A global function gets a dynptr. It may read the dynptr, but must not make another one there. */
static void test_dynptr_of_caller(void **state)
{
	static const struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 11, .name = "read", .global = true, .nr_args = 1,
		  .args = { { PB_BPF_FUNC_DYNPTR, 0 } } },
	};
	struct bpf_insn p[] = {
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_VALUE, 1), SET(2, 32), SET(3, 0), MOV(4, 10),
		BPF_ALU64_IMM(BPF_ADD, 4, -16), CALL(dynptr_from_mem),
		MOV(1, 10), BPF_ALU64_IMM(BPF_ADD, 1, -16), SUB(1), EXIT(),
		/* read */
		MOV(3, 1), MOV(1, 10), BPF_ALU64_IMM(BPF_ADD, 1, -8), SET(2, 8), SET(4, 0),
		SET(5, 0), CALL(dynptr_read), SET(0, 0), EXIT(),
	};
	const struct bpf_insn other[] = {
		MOV(4, 1), BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_VALUE, 1), SET(2, 32), SET(3, 0),
		BPF_JMP_A(0), CALL(dynptr_from_mem),
	};

	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), 0);
	p[8] = BPF_ALU64_IMM(BPF_ADD, 1, -24);	/* there is no dynptr */
	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), -EINVAL);
	p[8] = BPF_ALU64_IMM(BPF_ADD, 1, -16);
	memcpy(&p[11], other, sizeof other);
	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), -EINVAL);
}

/* ---- references --------------------------------------------------------------------------- */

/* A callback calls a subprogram, which acquires a record. The callback must release it. */
static void test_record_of_callback(void **state)
{
	static const struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 8, .name = "callback" },
		{ .insn = 15, .name = "reserve" },
	};
	struct bpf_insn p[] = {
		SET(1, 4), FUNC(2, 6), SET(3, 0), SET(4, 0), CALL(loop),
		SET(0, 0), EXIT(),
		/* callback */
		SUB(6), BPF_JMP_IMM(BPF_JEQ, 0, 0, 3),
		MOV(1, 0), SET(2, 0), CALL(get_prandom_u32),
		SET(0, 0), EXIT(),
		/* reserve */
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_FD, 2), SET(2, 8), SET(3, 0),
		CALL(ringbuf_reserve), EXIT(),
	};

	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), -EINVAL);
	p[12] = CALL(ringbuf_discard);
	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), 0);
}

/* A callback calls a subprogram, which submits a record of the callback's caller. The callback runs
 * several times, and then the caller submits the record, too. */
static void test_callers_record(void **state)
{
	static const struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 19, .name = "callback" },
		{ .insn = 23, .name = "submit" },
	};
	struct bpf_insn p[] = {
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_FD, 2), SET(2, 8), SET(3, 0),
		CALL(ringbuf_reserve), BPF_JMP_IMM(BPF_JEQ, 0, 0, 11),
		BPF_STX_MEM(BPF_DW, 10, 0, -8),
		SET(1, 4), FUNC(2, 10), MOV(3, 10), BPF_ALU64_IMM(BPF_ADD, 3, -8), SET(4, 0),
		CALL(loop), BPF_LDX_MEM(BPF_DW, 1, 10, -8), SET(2, 0), CALL(ringbuf_submit),
		SET(0, 0), EXIT(),
		/* callback */
		MOV(1, 2), SUB(2), SET(0, 0), EXIT(),
		/* submit */
		BPF_LDX_MEM(BPF_DW, 1, 1, 0), SET(2, 0), CALL(ringbuf_submit),
		SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), -EINVAL);
	p[25] = SET(0, 0);	/* the subprogram submits nothing */
	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), 0);
}

/* ---- values and keys of callbacks ---------------------------------------------------------- */

/* A callback takes the lock of the value that it gets. It must release the lock. */
static void test_lock_of_callback(void **state)
{
	static const struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 9, .name = "callback" },
	};
	struct bpf_insn p[] = {
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_FD, 1), FUNC(2, 6), SET(3, 0), SET(4, 0),
		CALL(for_each_map_elem), SET(0, 0), EXIT(),
		/* callback */
		MOV(6, 3), MOV(1, 6), CALL(spin_lock), MOV(1, 6), CALL(spin_unlock),
		SET(0, 0), EXIT(),
	};
	int gives, keeps;

	lock_at = 0;
	gives = VERDICT_SUBS(SCHED_CLS, p, funcs);
	p[13] = SET(1, 0);
	keeps = VERDICT_SUBS(SCHED_CLS, p, funcs);
	lock_at = -1;
	assert_int_equal(gives, 0);
	assert_int_equal(keeps, -EINVAL);
}

/* A callback stores the pointer to its key in its caller's frame. The key is gone when the helper
 * has returned. The value is still there. */
static void test_key_after_callback(void **state)
{
	static const struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 14, .name = "callback" },
	};
	struct bpf_insn p[] = {
		BPF_ST_MEM(BPF_DW, 10, -8, 0), BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_FD, 1),
		FUNC(2, 10), MOV(3, 10), BPF_ALU64_IMM(BPF_ADD, 3, -8), SET(4, 0),
		CALL(for_each_map_elem),
		BPF_LDX_MEM(BPF_DW, 1, 10, -8), BPF_JMP_IMM(BPF_JEQ, 1, 0, 1),
		BPF_LDX_MEM(BPF_W, 1, 1, 0), SET(0, 0), EXIT(),
		/* callback */
		BPF_LDX_MEM(BPF_W, 0, 2, 0), BPF_STX_MEM(BPF_DW, 4, 2, 0), SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), -EACCES);
	p[15] = BPF_STX_MEM(BPF_DW, 4, 3, 0);
	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), 0);
}

/* A callback makes a loop of its own. After the loop, its key is still there. */
static void test_key_after_inner_callback(void **state)
{
	static const struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 9, .name = "callback" },
		{ .insn = 20, .name = "inner" },
	};
	const struct bpf_insn p[] = {
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_FD, 1), FUNC(2, 6), SET(3, 0), SET(4, 0),
		CALL(for_each_map_elem), SET(0, 0), EXIT(),
		/* callback */
		BPF_STX_MEM(BPF_DW, 10, 2, -8), SET(1, 2), FUNC(2, 8), SET(3, 0), SET(4, 0),
		CALL(loop), BPF_LDX_MEM(BPF_DW, 6, 10, -8), BPF_LDX_MEM(BPF_W, 0, 6, 0), SET(0, 0),
		EXIT(),
		/* inner */
		SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), 0);
}

/* ---- the stack at run time ----------------------------------------------------------------- */

/* The main program loads the addresses of three callbacks. Each callback passes the next one to
 * bpf_loop, so the stack has the frames of all three. The program may need room for all of them. */
static void test_frames_of_callbacks(void **state)
{
	static const struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" }, { .insn = 15, .name = "first" },
		{ .insn = 23, .name = "second" }, { .insn = 31, .name = "third" },
	};
	struct bpf_insn p[] = {
		FUNC(1, 22), BPF_STX_MEM(BPF_DW, 10, 1, -8),
		FUNC(1, 27), BPF_STX_MEM(BPF_DW, 10, 1, -16),
		SET(1, 1), FUNC(2, 7), MOV(3, 10), BPF_ALU64_IMM(BPF_ADD, 3, -16), SET(4, 0),
		CALL(loop), SET(0, 0), EXIT(),
		/* first */
		BPF_ST_MEM(BPF_DW, 10, -480, 0), MOV(3, 2), BPF_LDX_MEM(BPF_DW, 2, 3, 8), SET(1, 1),
		SET(4, 0), CALL(loop), SET(0, 0), EXIT(),
		/* second */
		BPF_ST_MEM(BPF_DW, 10, -480, 0), BPF_LDX_MEM(BPF_DW, 2, 2, 0), SET(1, 1), SET(3, 0),
		SET(4, 0), CALL(loop), SET(0, 0), EXIT(),
		/* third */
		BPF_ST_MEM(BPF_DW, 10, -480, 0), SET(0, 0), EXIT(),
	};
	uint32_t large;

	measure = true;
	pb_bpf_settings.jit_enable = 1;
	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), 0);
	large = room;
	p[15].off = p[23].off = p[31].off = -8;
	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), 0);
	assert_true(room);
	assert_in_range(large, room + 256, room + 3 * 480);
	measure = false;
}

/* A callback passes itself to bpf_loop. The program may need room for as many callbacks as the
 * verifier allows. */
static void test_recursive_callback(void **state)
{
	static const struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" },
		{ .insn = 13, .name = "callback" },
	};
	const struct bpf_insn p[] = {
		FUNC(1, 12), BPF_STX_MEM(BPF_DW, 10, 1, -8), BPF_ST_MEM(BPF_DW, 10, -16, 3),
		SET(1, 1), FUNC(2, 7), MOV(3, 10), BPF_ALU64_IMM(BPF_ADD, 3, -16), SET(4, 0),
		CALL(loop), SET(0, 0), EXIT(),
		/* callback */
		MOV(3, 2), BPF_LDX_MEM(BPF_DW, 4, 3, 0), BPF_JMP_IMM(BPF_JEQ, 4, 0, 6),
		BPF_ALU64_IMM(BPF_SUB, 4, 1), BPF_STX_MEM(BPF_DW, 3, 4, 0),
		BPF_LDX_MEM(BPF_DW, 2, 3, 8), SET(1, 1), SET(4, 0), CALL(loop), SET(0, 0), EXIT(),
	};

	measure = true;
	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), 0);
	assert_in_range(room, 5120 + 7 * 1024, 32768);
	measure = false;
}

/* Two subprograms use the same third one to pass a callback to bpf_loop: the main program, and a
 * global function that the main program's callback calls. No run is recursive, but the subprograms
 * look as if the global function's callback were the main program's. */
static void test_callbacks_through_one_subprogram(void **state)
{
	static const struct pb_bpf_func funcs[] = {
		{ .insn = 0, .name = "main" }, { .insn = 5, .name = "pass" },
		{ .insn = 12, .name = "callback" },
		{ .insn = 15, .name = "global", .global = true }, { .insn = 20, .name = "inner" },
	};
	struct bpf_insn p[] = {
		FUNC(1, 11), SUB(2), SET(0, 0), EXIT(),
		/* pass */
		MOV(2, 1), SET(1, 1), SET(3, 0), SET(4, 0), CALL(loop), SET(0, 0), EXIT(),
		/* callback */
		SUB(2), SET(0, 0), EXIT(),
		/* global */
		FUNC(1, 4), SUB(-13), SET(0, 0), EXIT(),
		/* inner */
		BPF_ST_MEM(BPF_DW, 10, -480, 0), SET(0, 0), EXIT(),
	};
	uint32_t large;

	measure = true;
	pb_bpf_settings.jit_enable = 1;
	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), 0);
	large = room;
	p[20].off = -8;
	assert_int_equal(VERDICT_SUBS(KPROBE, p, funcs), 0);
	assert_true(room);
	assert_in_range(large, room, room + 480);
	assert_in_range(large, 2048, 32768);
	measure = false;
}

/* ---- locks -------------------------------------------------------------------------------- */

#define VALUE(d, map)	BPF_LD_IMM64_RAW(d, BPF_PSEUDO_MAP_VALUE, map)

/* The lock is taken through one load of the value's address, and released through another load.
 * The second load may be of another map. */
static void test_lock_by_two_loads(void **state)
{
	struct bpf_insn p[] = {
		VALUE(1, 5), CALL(spin_lock), VALUE(1, 6), CALL(spin_unlock), SET(0, 0), EXIT(),
	};

	assert_int_equal(VERDICT(SCHED_CLS, p), -EACCES);
	p[3].imm = 5;
	assert_int_equal(VERDICT(SCHED_CLS, p), 0);
}

/* One path takes the lock of the map's value. The other path takes the lock of an element that it
 * has looked up. Both paths release the lock of the map's value. */
static void test_lock_of_other_value_on_other_path(void **state)
{
	struct bpf_insn p[] = {
		BPF_ST_MEM(BPF_W, 10, -4, 0),
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_FD, 5), MOV(2, 10),
		BPF_ALU64_IMM(BPF_ADD, 2, -4), CALL(map_lookup_elem),
		BPF_JMP_IMM(BPF_JNE, 0, 0, 2), SET(0, 0), EXIT(),
		MOV(7, 0), CALL(get_prandom_u32), VALUE(1, 5),
		BPF_JMP_IMM(BPF_JNE, 0, 0, 1), BPF_JMP_A(1),
		MOV(1, 7),
		CALL(spin_lock), BPF_JMP_A(0), VALUE(1, 5), CALL(spin_unlock),
		SET(0, 0), EXIT(),
	};

	flags = BPF_F_TEST_STATE_FREQ;
	assert_int_equal(VERDICT(SCHED_CLS, p), -EACCES);
	p[15] = BPF_JMP_A(0);
	assert_int_equal(VERDICT(SCHED_CLS, p), 0);
	flags = 0;
}

/* ---- pointers to the packet --------------------------------------------------------------- */

/* The pointer was found after the packet's end. Then it moves, and is compared again. If it moves
 * to a lower address, it may be before the end. On this path the program writes outside of the
 * stack. */
static void test_packet_pointer_moves_back(void **state)
{
	static const struct { struct bpf_insn move; int verdict; } moves[] = {
		{ BPF_ALU64_IMM(BPF_ADD, 4, -64), -EACCES },
		{ BPF_ALU64_IMM(BPF_SUB, 4, 1), -EACCES },
		{ BPF_ALU64_REG(BPF_SUB, 4, 7), -EACCES },
		{ BPF_JMP_A(0), 0 },
		{ BPF_ALU64_IMM(BPF_ADD, 4, 8), 0 },
		{ BPF_ALU64_IMM(BPF_SUB, 4, -8), 0 },
	};
	struct bpf_insn p[] = {
		MOV(9, 1), CALL(get_prandom_u32), MOV(7, 0), BPF_ALU64_IMM(BPF_AND, 7, 63),
		BPF_LDX_MEM(BPF_W, 2, 9, offsetof(struct xdp_md, data)),
		BPF_LDX_MEM(BPF_W, 3, 9, offsetof(struct xdp_md, data_end)),
		SET(6, 0), MOV(4, 2), BPF_ALU64_IMM(BPF_ADD, 4, 64),
		BPF_JMP_REG(BPF_JGT, 4, 3, 1), BPF_JMP_A(3),
		SET(6, 4096), BPF_JMP_A(0), BPF_JMP_REG(BPF_JGT, 4, 3, 3),
		MOV(5, 10), BPF_ALU64_REG(BPF_ADD, 5, 6), BPF_ST_MEM(BPF_B, 5, -8, 1),
		SET(0, 2), EXIT(),
	};

	for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
		p[12] = moves[i].move;
		assert_int_equal(VERDICT(XDP, p), moves[i].verdict);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_global_function_of_six),
		cmocka_unit_test(test_global_function_of_other_type),
		cmocka_unit_test(test_map_as_memory),
		cmocka_unit_test(test_packet_as_memory),
		cmocka_unit_test(test_key_in_record),
		cmocka_unit_test(test_key_in_argument),
		cmocka_unit_test(test_dynptr_of_caller),
		cmocka_unit_test(test_record_of_callback),
		cmocka_unit_test(test_callers_record),
		cmocka_unit_test(test_lock_of_callback),
		cmocka_unit_test(test_key_after_callback),
		cmocka_unit_test(test_key_after_inner_callback),
		cmocka_unit_test(test_frames_of_callbacks),
		cmocka_unit_test(test_recursive_callback),
		cmocka_unit_test(test_callbacks_through_one_subprogram),
		cmocka_unit_test(test_lock_by_two_loads),
		cmocka_unit_test(test_lock_of_other_value_on_other_path),
		cmocka_unit_test(test_packet_pointer_moves_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
