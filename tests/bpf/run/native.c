/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests the native code that the JIT makes: the protection of its pages, blinded constants, long
 * programs, frames. test_exec.c runs these tests.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "bpf/run/fixup.h"
#include "bpf/run/heap.h"
#include "bpf/run/image.h"
#include "bpf/verifier/verify.h"
#include "insns.h"
#include "unverified.h"

void no_page_is_writable_and_executable(void **state)
{
	const struct pb_bpf_prog_spec spec = { 0 };
	const struct bpf_insn insns[] = { BPF_MOV64_IMM(0, 0), BPF_EXIT_INSN() };
	struct pb_bpf_prog *p = (choose(JIT), MAKE(&spec, insns, NULL));
	uint64_t code = (uint64_t)p->jited;
	int seen = 0;
	char line[512], flags[8];
	unsigned long from, to;
	FILE *f = fopen("/proc/self/maps", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		assert_int_equal(sscanf(line, "%lx-%lx %7s", &from, &to, flags), 3);
		assert_false(flags[1] == 'w' && flags[2] == 'x');
		if (from <= code && code < to && ++seen)
			assert_memory_equal(flags, "r-x", 3);
		if (from <= (uint64_t)p && (uint64_t)p < to && ++seen)
			assert_memory_equal(flags, "r--", 3);
	}
	fclose(f);
	assert_int_equal(seen, 2);
	pb_bpf_prog_free(p);
}

static bool contains(const struct pb_bpf_prog *p, uint32_t v)
{
	return memmem((const void *)p->jited, p->jited_len, &v, sizeof(v));
}

/* The program has every kind of instruction that can have a constant. */
void blinded_code_holds_no_constant(void **state)
{
	const uint32_t v = 0x5a7be137;
	const struct pb_bpf_prog_spec spec = { 0 }, trusted = { .privileged = true };
	const struct bpf_insn insns[] = {
		BPF_MOV64_IMM(0, v), BPF_ALU32_IMM(BPF_MOV, 1, v),
		BPF_LD_IMM64_RAW(2, 0, (uint64_t)v << 32 | v), BPF_ALU64_IMM(BPF_ADD, 0, v),
		BPF_ALU64_IMM(BPF_SUB, 0, v), BPF_ALU64_IMM(BPF_MUL, 1, v),
		BPF_ALU64_IMM(BPF_DIV, 1, v), BPF_ALU32_IMM(BPF_MOD, 1, v),
		BPF_ALU32_IMM(BPF_XOR, 0, v), BPF_ALU64_IMM(BPF_AND, 2, v),
		BPF_ALU64_IMM(BPF_OR, 2, v), BPF_ST_MEM(BPF_DW, 10, -8, v),
		BPF_ST_MEM(BPF_W, 10, -8, v), BPF_JMP_IMM(BPF_JEQ, 0, v, 0),
		BPF_JMP32_IMM(BPF_JSET, 0, v, 0), BPF_EXIT_INSN() };
	struct pb_bpf_prog *p = (choose(JIT), MAKE(&spec, insns, NULL));
	uint64_t want = run_with(p, NULL);

	assert_true(contains(p, v));
	pb_bpf_prog_free(p);
	for (int harden = 1; harden <= 2; harden++) {
		pb_bpf_settings.jit_harden = (uint32_t)harden;
		p = MAKE(&spec, insns, NULL);
		assert_false(contains(p, v));
		assert_int_equal(run_with(p, NULL), want);
		pb_bpf_prog_free(p);
		p = MAKE(&trusted, insns, NULL);
		assert_int_equal(contains(p, v), harden == 1);
		pb_bpf_prog_free(p);
	}
}

/* If the loader has CAP_BPF, jit_harden 1 doesn't blind constants. The kernel's
 * bpf_jit_blinding_enabled() has the same rule. */
void cap_bpf_exempts_from_blinding(void **state)
{
	const struct bpf_insn insns[] = { BPF_MOV64_IMM(0, 0), BPF_EXIT_INSN() };

	for (uint32_t caps = 0; caps <= PB_BPF_CAP_ALL; caps++) {
		struct pb_bpf_verify v = {
			.type = pb_bpf_type_of(BPF_PROG_TYPE_SOCKET_FILTER), .caps = caps,
			.gpl = true, .insns = insns, .nr = 2, .mem = &pb_bpf_heap,
		};
		struct pb_bpf_resolved r;

		assert_int_equal(pb_bpf_verify(&v), 0);
		assert_int_equal(pb_bpf_resolve(&v, &r), 0);
		assert_int_equal(r.spec.privileged, !!(caps & PB_BPF_CAP_BPF));
		pb_bpf_resolved_free(&r);
		pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	}
}

static uint32_t shown;
static void show(const struct pb_bpf_prog *p, uint32_t passes)
{
	shown += p->jited && passes;
}

void code_is_shown_on_request(void **state)
{
	const struct pb_bpf_prog_spec spec = { 0 };
	const struct bpf_insn insns[] = { BPF_MOV64_IMM(0, 5), BPF_EXIT_INSN() };

	choose(JIT);
	pb_bpf_settings.show = show;
	pb_bpf_prog_free(MAKE(&spec, insns, NULL));
	assert_int_equal(shown, 0);
	pb_bpf_settings.jit_enable = 2;
	pb_bpf_prog_free(MAKE(&spec, insns, NULL));
	assert_int_equal(shown, 1);
	pb_bpf_settings.show = NULL;
}

/* The lengths of jumps depend on each other, and many jumps are near the limit of a short jump. The
 * JIT must quickly find lengths that fit. */
void long_programs_get_native_code(void **state)
{
	enum { NR = 200000 };
	struct bpf_insn *insns = calloc(NR, sizeof(*insns));
	uint8_t *ops = calloc(NR, 1);
	uint64_t seed = 1, want = 0;

	for (int kind = 0; kind < 3; kind++) {
		struct pb_bpf_prog_spec s = { .insns = insns, .ops = ops, .nr = NR };

		insns[0] = BPF_MOV64_IMM(0, 0);
		for (uint32_t i = 1; i < NR - 1; i++) {
			uint32_t left = NR - 2 - i, by;

			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			/* Kind 0: all jumps skip the same number of instructions. Whether a jump
			 * can be short depends on the jumps that it skips. */
			by = kind == 0 ? 20 :
				kind == 1 ? (uint32_t)(seed >> 40) % 60 :
				(uint32_t)(seed >> 40) % 32768;
			insns[i] = seed >> 62 ?
				BPF_JMP_IMM(BPF_JSGT, 1, 1000000, by < left ? by : left) :
				BPF_ALU64_IMM(BPF_ADD, 0, 1);
		}
		insns[NR - 1] = BPF_EXIT_INSN();
		for (uint32_t i = 0; i < NR; i++)
			ops[i] = (uint8_t)pb_bpf_decode(&insns[i]);
		for (enum engine e = 0; e < NR_ENGINES; e++) {
			struct pb_bpf_prog *p;

			choose(e);
			assert_int_equal(pb_bpf_prog_make(&s, &p), 0);
			assert_int_equal(!p->jited, e == INTERPRETER);
			if (e == INTERPRETER)
				want = run_with(p, NULL);
			assert_int_equal(run_with(p, NULL), want);
			pb_bpf_prog_free(p);
		}
	}
	free(insns);
	free(ops);
}

/* Unwinds frames of native code in two ways: by frame pointers, and by the program's unwind table.
 * test_gdb.py stops in walk(). */
static uint64_t chain[16];
static void *trace[32], *outer[32];
static int nr_trace, nr_outer;

void __register_frame(const void *eh_frame);
void __deregister_frame(const void *eh_frame);

static __attribute__((noinline)) uint64_t walk(uint64_t a, uint64_t b, uint64_t c, uint64_t d,
					       uint64_t e, struct pb_bpf_run *run)
{
	uint64_t *fp = __builtin_frame_address(0);

	nr_trace = backtrace(trace, pb_array_size(trace));
	for (size_t n = 0; n < 4; n++, fp = (uint64_t *)fp[0])
		chain[n] = fp[1];
	return 0;
}

void frames_are_a_chain(void **state)
{
	static pb_bpf_fn *const calls[] = { walk, loop };
	static const struct pb_bpf_sub subs[] = {
		{ 0, 0, false }, { 14, 8, true }, { 18, 24, false } };
	const struct pb_bpf_prog_spec spec = {
		.calls = calls, .nr_calls = 2, .subs = subs, .nr_subs = 3, .name = "chain" };
	/* the program calls the helper loop(); loop() calls a callback; the callback calls a
	 * subprogram; the subprogram calls the helper walk() */
	const struct bpf_insn insns[] = {
		BPF_MOV64_IMM(6, 0), BPF_MOV64_IMM(9, 0), BPF_LD_IMM64_RAW(2, BPF_PSEUDO_FUNC, 11),
		BPF_MOV64_IMM(1, 1), BPF_MOV64_IMM(3, 0), BPF_MOV64_IMM(4, 0), BPF_CALL_FN(1),
		BPF_MOV64_REG(0, 0), BPF_MOV64_REG(0, 0), BPF_MOV64_REG(0, 0), BPF_MOV64_REG(0, 0),
		BPF_MOV64_REG(0, 0), BPF_EXIT_INSN(),
		/* 14: */
		BPF_MOV64_REG(7, 1), BPF_CALL_REL(8, 2), BPF_MOV64_IMM(0, 0), BPF_EXIT_INSN(),
		/* 18: */
		BPF_MOV64_REG(8, 1), BPF_ST_MEM(BPF_DW, 10, -24, 0), BPF_CALL_FN(0),
		BPF_EXIT_INSN() };
	struct pb_bpf_prog *p;
	uint64_t code;
	int inside = 0;

	assert_int_equal(insns[18].dst_reg, 8);
	pb_bpf_settings.debugger = 1;
	p = (choose(JIT), MAKE(&spec, insns, NULL));
	pb_bpf_settings.debugger = 0;
	code = (uint64_t)p->jited;
	__register_frame(p->unwind);
	nr_outer = backtrace(outer, pb_array_size(outer));
	run_with(p, NULL);
	assert_in_range(chain[0], code, code + p->jited_len);
	assert_in_range(chain[1], code, code + p->jited_len);
	assert_in_range(chain[2], code, code + p->jited_len);
	assert_not_in_range(chain[3], code, code + p->jited_len);
	/* the four frames: the subprogram, the callback, the entry code of the callback, the
	 * program */
	for (int n = 0; n < nr_trace; n++)
		inside += (uint64_t)trace[n] - code < p->jited_len;
	assert_int_equal(inside, 4);
	/* Outside of this function, both traces must have the same frames. The loop skips
	 * outer[0] and outer[1]: one is this function's frame, and a sanitizer's backtrace() may
	 * add another frame before it. */
	assert_true(nr_trace > nr_outer && nr_outer > 3);
	for (int n = 1; n < nr_outer - 1; n++)
		assert_ptr_equal(trace[nr_trace - n], outer[nr_outer - n]);
	__deregister_frame(p->unwind);
	pb_bpf_prog_free(p);
}
