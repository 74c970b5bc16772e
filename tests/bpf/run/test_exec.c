/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests what a program needs besides its instructions: calls of helpers, callbacks from helpers,
 * tail calls, loads that fault, statistics. Most tests use three engines: the interpreter, the JIT
 * and the JIT with blinded constants. native.c has the tests of native code.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include "base/base.h"
#include "bpf/map/map.h"
#include "bpf/run/fixup.h"
#include "bpf/run/image.h"
#include "insns.h"
#include "unverified.h"

/* ---- helpers and callbacks --------------------------------------------------- */

static uint64_t sum(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		    struct pb_bpf_run *run)
{
	/* frames have the alignment that C requires */
	assert_int_equal((uint64_t)__builtin_frame_address(0) % 16, 0);
	return a + 2 * b + 3 * c + 4 * d + 5 * e + run->cookie;
}

static void helpers_get_arguments_and_the_run(void **state)
{
	static pb_bpf_fn *const calls[] = { sum };
	const struct pb_bpf_prog_spec spec = { .calls = calls, .nr_calls = 1 };
	const struct bpf_insn insns[] = {
		BPF_MOV64_IMM(6, 1000), BPF_MOV64_IMM(1, 1), BPF_MOV64_IMM(2, 10),
		BPF_MOV64_IMM(3, 100), BPF_MOV64_IMM(4, -1), BPF_MOV64_REG(5, 6), BPF_CALL_FN(0),
		BPF_ALU64_REG(BPF_ADD, 0, 6), BPF_EXIT_INSN() };

	for (enum engine e = 0; e < NR_ENGINES; e++) {
		struct pb_bpf_prog *p = (choose(e), MAKE(&spec, insns, NULL));
		struct pb_bpf_run run = { .prog = p, .cookie = 1 << 20 };

		assert_int_equal(pb_bpf_enter(&run), 1 + 20 + 300 - 4 + 5000 + (1 << 20) + 1000);
		pb_bpf_prog_free(p);
	}
}

uint64_t loop(uint64_t n, uint64_t func, uint64_t ctx, uint64_t flags, uint64_t r5,
		     struct pb_bpf_run *run)
{
	uint64_t i = 0;

	while (i < n)
		if (pb_bpf_call_back(run, func, i++, ctx, 0, 0, 0))
			break;
	return i;
}

/* For each index, the callback calls a helper and adds the result to a slot of the program's stack.
 * Program and callback use r6. The engine must save r6 before it calls the callback, and restore it
 * afterwards, so that the program finds its own r6 after the helper. */
static void callbacks_run_in_either_engine(void **state)
{
	static pb_bpf_fn *const calls[] = { loop, sum };
	static const struct pb_bpf_sub subs[] = { { 0, 16, false }, { 13, 8, true } };
	const struct pb_bpf_prog_spec spec = {
		.calls = calls, .nr_calls = 2, .subs = subs, .nr_subs = 2 };
	const struct bpf_insn insns[] = {
		BPF_MOV64_IMM(6, 7), BPF_ST_MEM(BPF_DW, 10, -8, 0), BPF_MOV64_IMM(1, 100),
		BPF_LD_IMM64_RAW(2, BPF_PSEUDO_FUNC, 9), BPF_MOV64_REG(3, 10),
		BPF_ALU64_IMM(BPF_ADD, 3, -8), BPF_MOV64_IMM(4, 0), BPF_CALL_FN(0),
		BPF_ALU64_REG(BPF_MUL, 0, 6), BPF_LDX_MEM(BPF_DW, 1, 10, -8),
		BPF_ALU64_REG(BPF_ADD, 0, 1), BPF_EXIT_INSN(),
		/* 13: */
		BPF_MOV64_REG(6, 1), BPF_MOV64_REG(7, 2), BPF_STX_MEM(BPF_DW, 10, 7, -8),
		BPF_MOV64_IMM(2, 0), BPF_MOV64_IMM(3, 0), BPF_MOV64_IMM(4, 0), BPF_MOV64_IMM(5, 0),
		BPF_CALL_FN(1), BPF_LDX_MEM(BPF_DW, 7, 10, -8),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, 7, 0, 0), BPF_MOV64_IMM(0, 0),
		BPF_JMP_IMM(BPF_JLT, 6, 49, 1), BPF_MOV64_IMM(0, 1), BPF_EXIT_INSN() };

	assert_int_equal(insns[13].dst_reg, 6);
	for (enum engine e = 0; e < NR_ENGINES; e++) {
		struct pb_bpf_prog *p = (choose(e), MAKE(&spec, insns, NULL));
		struct pb_bpf_run run = { .prog = p, .cookie = 5 };

		assert_int_equal(pb_bpf_enter(&run), 50 * 7 + 49 * 50 / 2 + 50 * 5);
		pb_bpf_prog_free(p);
	}
}

/* ---- tail calls ---------------------------------------------------------------- */

static struct pb_bpf_prog *slots[4];

static const struct pb_bpf_prog *slot(struct pb_bpf_map *map, uint32_t index)
{
	return index < pb_array_size(slots) ? slots[index] : NULL;
}

static const struct pb_bpf_map_ops array_ops = { .prog = slot };
static struct pb_bpf_map array = { .ops = &array_ops };

#define TAIL(index) \
	BPF_MOV64_REG(1, 6), BPF_LD_IMM64_RAW(2, 0, &array), BPF_MOV64_IMM(3, index), \
	BPF_CALL_FN(12)

static struct pb_bpf_prog *make_tail(const struct pb_bpf_prog_spec *spec,
				     const struct bpf_insn *insns, uint32_t nr)
{
	uint8_t special[256] = { 0 };

	for (uint32_t i = 0; i < nr; i++)
		if (insns[i].code == (BPF_JMP | BPF_CALL) && insns[i].imm == 12 &&
		    !insns[i].src_reg)
			special[i] = PB_BPF_OP_TAIL_CALL;
	return make_of(spec, insns, nr, special);
}

static void free_slots(void)
{
	for (size_t i = 0; i < pb_array_size(slots); i++) {
		pb_bpf_prog_free(slots[i]);
		slots[i] = NULL;
	}
}

/* A program counts its runs in the context and makes a tail call to itself. */
static void tail_calls_end_after_33(void **state)
{
	const struct pb_bpf_prog_spec spec = { 0 };
	const struct bpf_insn insns[] = {
		BPF_MOV64_REG(6, 1), BPF_LDX_MEM(BPF_DW, 7, 6, 0), BPF_ALU64_IMM(BPF_ADD, 7, 1),
		BPF_STX_MEM(BPF_DW, 6, 7, 0), TAIL(0), BPF_MOV64_REG(0, 7), BPF_EXIT_INSN() };

	for (enum engine e = 0; e < NR_ENGINES; e++) {
		uint64_t ctx = 0;

		choose(e);
		slots[0] = make_tail(&spec, insns, pb_array_size(insns));
		assert_int_equal(run_with(slots[0], &ctx), 34);
		assert_int_equal(ctx, 34);
		free_slots();
	}
}

static void no_program_no_tail_call(void **state)
{
	const struct pb_bpf_prog_spec spec = { 0 };
	const struct bpf_insn insns[] = { BPF_MOV64_REG(6, 1), TAIL(1), TAIL(4), TAIL(-1),
		BPF_MOV64_IMM(0, 3), BPF_EXIT_INSN() };

	for (enum engine e = 0; e < NR_ENGINES; e++) {
		struct pb_bpf_prog *p = (choose(e), make_tail(&spec, insns, pb_array_size(insns)));

		assert_int_equal(run_with(p, NULL), 3);
		pb_bpf_prog_free(p);
	}
}

static uint64_t which(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		      struct pb_bpf_run *run)
{
	return run->prog->id;
}

/*
 * A tail call in a subprogram ends only the subprogram. The caller of the subprogram continues with
 * the other program's result. The caller's registers and stack are unchanged, and helpers again see
 * the caller in run->prog. The two programs may run on different engines.
 */
static void tail_call_in_a_subprogram(enum engine first, enum engine second)
{
	static pb_bpf_fn *const calls[] = { which };
	static const struct pb_bpf_sub subs[] = { { 0, 8, false }, { 13, 0, false } };
	const struct pb_bpf_prog_spec caller = {
		.calls = calls, .nr_calls = 1, .subs = subs, .nr_subs = 2, .id = 5 };
	const struct pb_bpf_prog_spec callee = { .calls = calls, .nr_calls = 1, .id = 6 };
	const struct bpf_insn insns[] = {
		BPF_MOV64_REG(6, 1), BPF_MOV64_IMM(7, 70), BPF_MOV64_IMM(9, 9),
		BPF_ST_MEM(BPF_DW, 10, -8, 800), BPF_CALL_REL(8, 8), BPF_MOV64_REG(8, 0),
		BPF_CALL_FN(0), BPF_ALU64_REG(BPF_ADD, 0, 8), BPF_ALU64_REG(BPF_ADD, 0, 7),
		BPF_ALU64_REG(BPF_ADD, 0, 9), BPF_LDX_MEM(BPF_DW, 1, 10, -8),
		BPF_ALU64_REG(BPF_ADD, 0, 1), BPF_EXIT_INSN(),
		/* 13: */
		BPF_MOV64_REG(6, 1), BPF_MOV64_IMM(7, 0), BPF_MOV64_IMM(9, 0), TAIL(2),
		BPF_MOV64_IMM(0, 0), BPF_EXIT_INSN() };
	const struct bpf_insn other[] = { BPF_MOV64_IMM(6, -1), BPF_MOV64_IMM(8, -1),
		BPF_LDX_MEM(BPF_DW, 9, 1, 0), BPF_ST_MEM(BPF_DW, 10, -8, 0), BPF_CALL_FN(0),
		BPF_ALU64_IMM(BPF_MUL, 0, 10000), BPF_ALU64_REG(BPF_ADD, 0, 9), BPF_EXIT_INSN() };
	uint64_t ctx = 100000;
	struct pb_bpf_prog *p;

	assert_int_equal(insns[13].dst_reg, 6);
	choose(second);
	slots[2] = MAKE(&callee, other, NULL);
	choose(first);
	p = make_tail(&caller, insns, pb_array_size(insns));
	assert_int_equal(run_with(p, &ctx), 5 + 70 + 9 + 800 + 60000 + 100000);
	pb_bpf_prog_free(p);
	free_slots();
}

static void tail_calls_leave_the_callers_frames(void **state)
{
	for (enum engine a = 0; a < NR_ENGINES; a++)
		for (enum engine b = 0; b < NR_ENGINES; b++)
			tail_call_in_a_subprogram(a, b);
}

/*
 * A tail call in a callback ends only the callback. The helper calls the callback again, and after
 * the helper other helpers again see the caller in run->prog. The target counts its runs in the
 * context. In the interpreter the callback's number is beyond the target's instructions.
 */
static void tail_call_in_a_callback(enum engine first, enum engine second)
{
	static pb_bpf_fn *const calls[] = { loop, which };
	static const struct pb_bpf_sub subs[] = { { 0, 0, false }, { 9, 0, true } };
	const struct pb_bpf_prog_spec caller = {
		.calls = calls, .nr_calls = 2, .subs = subs, .nr_subs = 2, .id = 5 };
	const struct pb_bpf_prog_spec callee = { .id = 6 };
	const struct bpf_insn insns[] = {
		BPF_MOV64_REG(3, 1), BPF_MOV64_IMM(1, 3), BPF_LD_IMM64_RAW(2, BPF_PSEUDO_FUNC, 6),
		BPF_MOV64_IMM(4, 0), BPF_CALL_FN(0), BPF_MOV64_IMM(1, 0), BPF_CALL_FN(1),
		BPF_EXIT_INSN(),
		/* 9: */
		BPF_MOV64_REG(6, 2), TAIL(2), BPF_MOV64_IMM(0, 1), BPF_EXIT_INSN() };
	const struct bpf_insn other[] = { BPF_MOV64_IMM(2, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, 1, 2, 0), BPF_MOV64_IMM(0, 0), BPF_EXIT_INSN() };
	struct pb_bpf_prog *p;
	uint64_t ctx = 0;

	assert_int_equal(insns[9].dst_reg, 6);
	choose(second);
	slots[2] = MAKE(&callee, other, NULL);
	choose(first);
	p = make_tail(&caller, insns, pb_array_size(insns));
	assert_int_equal(run_with(p, &ctx), 5);
	assert_int_equal(ctx, 3);
	pb_bpf_prog_free(p);
	free_slots();
}

static void tail_calls_leave_the_helper_that_calls_back(void **state)
{
	for (enum engine a = 0; a < NR_ENGINES; a++)
		for (enum engine b = 0; b < NR_ENGINES; b++)
			tail_call_in_a_callback(a, b);
}

/* A program of one engine makes a tail call to a program of another engine. Tests all pairs. */
static void tail_calls_change_the_engine(void **state)
{
	static pb_bpf_fn *const calls[] = { which };
	const struct pb_bpf_prog_spec spec = { .calls = calls, .nr_calls = 1, .id = 9 };
	const struct bpf_insn to_2[] = { BPF_MOV64_REG(6, 1), TAIL(2), BPF_EXIT_INSN() };
	const struct bpf_insn end[] = {
		BPF_LDX_MEM(BPF_DW, 6, 1, 0), BPF_CALL_FN(0), BPF_ALU64_REG(BPF_ADD, 0, 6),
		BPF_EXIT_INSN() };
	uint64_t ctx = 100;

	for (int k = 0; k < NR_ENGINES * NR_ENGINES; k++) {
		choose(k / NR_ENGINES);
		slots[0] = make_tail(&spec, to_2, pb_array_size(to_2));
		choose(k % NR_ENGINES);
		slots[2] = MAKE(&spec, end, NULL);
		assert_int_equal(run_with(slots[0], &ctx), 109);
		free_slots();
	}
}

/* ---- loads that fault ------------------------------------------------------------- */

static volatile int faults;	/* counts faults; meaningful only if just one thread faults */

static void on_fault(int sig, siginfo_t *info, void *ucontext)
{
	ucontext_t *u = ucontext;
	uint64_t to = pb_bpf_fault((uint64_t)u->uc_mcontext.gregs[REG_RIP]);

	faults++;
	if (!to)
		signal(sig, SIG_DFL);
	else
		u->uc_mcontext.gregs[REG_RIP] = (greg_t)to;
}

/* On each engine, a load with the BPF code `code` and our opcode `op` must give `want` for address
 * `at`. If `same` is true, the load's source and destination are the same register. */
static void probe(uint8_t op, uint8_t code, uint64_t at, uint64_t want, bool same)
{
	const struct pb_bpf_prog_spec spec = { 0 };
	const struct bpf_insn insns[] = {
		BPF_MOV64_REG(7, 1), BPF_MOV64_IMM(2, -1), I(code, same ? 1 : 2, 1, 3, 0),
		BPF_MOV64_REG(0, same ? 1 : 2), BPF_JMP_REG(BPF_JNE, 0, 3, 0), BPF_EXIT_INSN() };
	const uint8_t special[pb_array_size(insns)] = { [2] = op };

	for (enum engine e = 0; e < NR_ENGINES; e++) {
		struct pb_bpf_prog *p = (choose(e), MAKE(&spec, insns, special));

		assert_int_equal(run_with(p, (void *)(at - 3)), want);
		pb_bpf_prog_free(p);
	}
}

static void loads_that_fault_give_0(void **state)
{
	static const struct { uint8_t op, code; uint64_t mask; int bits; } kinds[] = {
		{ PB_BPF_OP_PROBE_B, BPF_LDX | BPF_MEM | BPF_B, 0xff, 0 },
		{ PB_BPF_OP_PROBE_H, BPF_LDX | BPF_MEM | BPF_H, 0xffff, 0 },
		{ PB_BPF_OP_PROBE_W, BPF_LDX | BPF_MEM | BPF_W, 0xffffffff, 0 },
		{ PB_BPF_OP_PROBE_DW, BPF_LDX | BPF_MEM | BPF_DW, ~0ull, 0 },
		{ PB_BPF_OP_PROBE_SB, BPF_LDX | BPF_MEMSX | BPF_B, 0xff, 8 },
		{ PB_BPF_OP_PROBE_SH, BPF_LDX | BPF_MEMSX | BPF_H, 0xffff, 16 },
		{ PB_BPF_OP_PROBE_SW, BPF_LDX | BPF_MEMSX | BPF_W, 0xffffffff, 32 } };
	struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER },
		old[2];
	uint64_t word = 0x8182838485868788ull;
	void *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sigaction(SIGSEGV, &act, &old[0]);
	sigaction(SIGBUS, &act, &old[1]);
	for (size_t k = 0; k < pb_array_size(kinds); k++) {
		uint64_t v = word & kinds[k].mask;

		if (kinds[k].bits)
			v = (uint64_t)((int64_t)(v << (64 - kinds[k].bits)) >>
				       (64 - kinds[k].bits));
		for (int same = 0; same < 2; same++) {
			faults = 0;
			probe(kinds[k].op, kinds[k].code, (uint64_t)&word, v, same);
			assert_int_equal(faults, 0);
			probe(kinds[k].op, kinds[k].code, (uint64_t)none + 64, 0, same);
			probe(kinds[k].op, kinds[k].code, 0, 0, same);
			probe(kinds[k].op, kinds[k].code, 1ull << 63 | 8, 0, same);
			assert_int_equal(faults, 3 * NR_ENGINES);
		}
	}
	sigaction(SIGSEGV, &old[0], NULL);
	sigaction(SIGBUS, &old[1], NULL);
	munmap(none, 4096);
}

/* Several threads run this function. Each thread makes and frees programs, and runs a program whose
 * load faults. */
static void *make_and_free(void *arg)
{
	const struct bpf_insn insns[] = { BPF_MOV64_IMM(0, 11), BPF_LDX_MEM(BPF_B, 0, 1, 0),
		BPF_EXIT_INSN() };
	const uint8_t ops[] = { PB_BPF_OP_MOV64_K, PB_BPF_OP_PROBE_B, PB_BPF_OP_EXIT };
	const struct pb_bpf_prog_spec s = {
		.insns = insns, .ops = ops, .nr = pb_array_size(insns) };
	struct pb_bpf_prog *p[4];
	uint64_t bad = 0;

	for (int n = 0; n < 300; n++) {
		for (int k = 0; k < 4; k++)
			bad += pb_bpf_prog_make(&s, &p[k]) || !p[k]->jited;
		bad += run_with(p[n % 4], (void *)8) != 0;
		for (int k = 0; k < 4; k++)
			pb_bpf_prog_free(p[(k + n) % 4]);
	}
	return (void *)bad;
}

static void faults_while_programs_come_and_go(void **state)
{
	struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER },
		old;
	pthread_t threads[3];

	choose(JIT);
	sigaction(SIGSEGV, &act, &old);
	for (size_t k = 0; k < pb_array_size(threads); k++)
		assert_int_equal(pthread_create(&threads[k], NULL, make_and_free, NULL), 0);
	for (size_t k = 0; k < pb_array_size(threads); k++) {
		void *bad;

		pthread_join(threads[k], &bad);
		assert_null(bad);
	}
	sigaction(SIGSEGV, &old, NULL);
}

static void other_faults_are_not_ours(void **state)
{
	assert_int_equal(pb_bpf_fault(0), 0);
	assert_int_equal(pb_bpf_fault((uint64_t)other_faults_are_not_ours), 0);
}

/* ---- counts, jumps, signals ---------------------------------------------------------- */

static uint64_t clock_ns;
static uint64_t ticking(void)
{
	return clock_ns += 7;
}

static void runs_are_counted_while_asked(void **state)
{
	const struct pb_bpf_prog_spec spec = { 0 };
	const struct bpf_insn insns[] = { BPF_MOV64_IMM(0, 5), BPF_EXIT_INSN() };

	for (enum engine e = 0; e < NR_ENGINES; e++) {
		struct pb_bpf_settings before = (choose(e), pb_bpf_settings);
		struct pb_bpf_prog *p = MAKE(&spec, insns, NULL);

		run_with(p, NULL);
		pb_bpf_settings.stats = 1;
		pb_bpf_settings.now = ticking;
		assert_int_equal(run_with(p, NULL), 5);
		assert_int_equal(run_with(p, NULL), 5);
		pb_bpf_settings = before;
		run_with(p, NULL);
		assert_int_equal(p->stats->runs, 2);
		assert_int_equal(p->stats->ns, 14);
		pb_bpf_prog_free(p);
	}
}

/* A backward jump to the first instruction of a subprogram doesn't enter the subprogram again. */
static void loops_to_the_first_instruction(void **state)
{
	static const struct pb_bpf_sub subs[] = { { 0, 8, false }, { 6, 16, false } };
	const struct pb_bpf_prog_spec spec = { .subs = subs, .nr_subs = 2 };
	const struct bpf_insn insns[] = {
		BPF_ALU64_IMM(BPF_ADD, 1, 1), BPF_STX_MEM(BPF_DW, 10, 1, -8),
		BPF_JMP_IMM(BPF_JLT, 1, 10, -3), BPF_CALL_REL(8, 2), BPF_ALU64_IMM(BPF_ADD, 0, 1),
		BPF_EXIT_INSN(),
		/* 6: */
		BPF_ALU64_IMM(BPF_ADD, 1, 2), BPF_STX_MEM(BPF_DW, 10, 1, -16),
		BPF_JMP_IMM(BPF_JLT, 1, 50, -3), BPF_MOV64_REG(0, 1), BPF_MOV64_IMM(6, 3),
		BPF_EXIT_INSN() };

	for (enum engine e = 0; e < NR_ENGINES; e++) {
		struct pb_bpf_prog *p = (choose(e), MAKE(&spec, insns, NULL));

		assert_int_equal(run_with(p, NULL), 51);
		pb_bpf_prog_free(p);
	}
}

/*
 * A signal handler interrupts the program at a random instruction and runs the same program. Each
 * handler sets the timer for the next signal, up to NR_NESTED signals. So at most as many handlers
 * nest, even if a debugger takes longer to pass on a signal than the timer's time.
 */
enum { NR_NESTED = 200 };
static struct pb_bpf_prog *interrupted;
static uint64_t nested, nested_wrong;

static void set_timer(void)
{
	const struct itimerval soon = { .it_value = { 0, 200 } };

	setitimer(ITIMER_REAL, &soon, NULL);
}

static void run_in_handler(int sig)
{
	uint64_t ctx[2] = { 3, 0 };

	if (__atomic_add_fetch(&nested, 1, __ATOMIC_RELAXED) < NR_NESTED)
		set_timer();
	if (run_with(interrupted, ctx) != 3 * 3000 + 12)
		__atomic_add_fetch(&nested_wrong, 1, __ATOMIC_RELAXED);
}

static uint64_t add(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		    struct pb_bpf_run *run)
{
	return a + b + (run->prog != interrupted);
}

static void handlers_run_programs_in_programs(void **state)
{
	static pb_bpf_fn *const calls[] = { add };
	static const struct pb_bpf_sub subs[] = { { 0, 16, false }, { 17, 8, false } };
	const struct pb_bpf_prog_spec spec = {
		.calls = calls, .nr_calls = 1, .subs = subs, .nr_subs = 2 };
	const struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, 6, 1, 0), BPF_MOV64_IMM(7, 3000), BPF_MOV64_IMM(8, 0),
		BPF_ST_MEM(BPF_DW, 10, -8, 5),
		/* 4: */
		BPF_MOV64_REG(1, 8), BPF_MOV64_REG(2, 6), BPF_CALL_REL(16, 10), BPF_MOV64_REG(8, 0),
		BPF_STX_MEM(BPF_DW, 10, 7, -16), BPF_LDX_MEM(BPF_DW, 7, 10, -16),
		BPF_ALU64_IMM(BPF_SUB, 7, 1), BPF_JMP_IMM(BPF_JNE, 7, 0, -8), BPF_MOV64_REG(0, 8),
		BPF_LDX_MEM(BPF_DW, 1, 10, -8), BPF_ALU64_IMM(BPF_ADD, 1, 7),
		BPF_ALU64_REG(BPF_ADD, 0, 1), BPF_EXIT_INSN(),
		/* 17: */
		BPF_STX_MEM(BPF_DW, 10, 1, -8), BPF_CALL_FN(0), BPF_EXIT_INSN() };
	struct sigaction act = { .sa_handler = run_in_handler, .sa_flags = SA_NODEFER }, old;

	assert_int_equal(insns[17].code, BPF_STX | BPF_MEM | BPF_DW);
	for (enum engine e = 0; e < NR_ENGINES; e++) {
		uint64_t ctx[2] = { 7, 0 };

		choose(e);
		interrupted = MAKE(&spec, insns, NULL);
		nested = nested_wrong = 0;
		sigaction(SIGALRM, &act, &old);
		set_timer();
		while (__atomic_load_n(&nested, __ATOMIC_RELAXED) < NR_NESTED)
			assert_int_equal(run_with(interrupted, ctx), 7 * 3000 + 12);
		sigaction(SIGALRM, &old, NULL);
		assert_int_equal(nested, NR_NESTED);
		assert_int_equal(nested_wrong, 0);
		pb_bpf_prog_free(interrupted);
	}
}

static void unsound_programs_are_not_made(void **state)
{
	static const struct pb_bpf_sub overlap[] = { { 0, 0, false }, { 0, 0, false } };
	const struct bpf_insn call[] = { BPF_CALL_REL(0, 7), BPF_EXIT_INSN() };
	const uint8_t call_ops[] = { PB_BPF_OP_CALL_PC, PB_BPF_OP_EXIT },
		bad_ops[] = { PB_BPF_NR_ALL_OPS, 1 },
		helper_ops[] = { PB_BPF_OP_CALL, PB_BPF_OP_EXIT };
	struct pb_bpf_prog_spec s = { .insns = call, .ops = call_ops, .nr = 2 };
	struct pb_bpf_prog *p;

	assert_int_equal(pb_bpf_prog_make(&s, &p), -EINVAL);
	s.ops = bad_ops;
	assert_int_equal(pb_bpf_prog_make(&s, &p), -EINVAL);
	s.ops = helper_ops;
	assert_int_equal(pb_bpf_prog_make(&s, &p), -EINVAL);
	s.nr = 0;
	assert_int_equal(pb_bpf_prog_make(&s, &p), -EINVAL);
	for (int off = -3; off <= 3; off++) {
		const struct bpf_insn jump[] = {
			BPF_MOV64_IMM(0, 0), BPF_JMP_IMM(BPF_JEQ, 0, 0, off), BPF_EXIT_INSN() };
		const uint8_t ops[] = { PB_BPF_OP_MOV64_K, PB_BPF_OP_JEQ64_K, PB_BPF_OP_EXIT };

		s = (struct pb_bpf_prog_spec){ .insns = jump, .ops = ops, .nr = 3 };
		assert_int_equal(pb_bpf_prog_make(&s, &p), off < -2 || off > 0 ? -EINVAL : 0);
		if (off >= -2 && off <= 0)
			pb_bpf_prog_free(p);
		s.nr = 2;
		assert_int_equal(pb_bpf_prog_make(&s, &p), -EINVAL);
	}
	s = (struct pb_bpf_prog_spec){ .insns = call + 1, .ops = call_ops + 1, .nr = 1,
				       .subs = overlap, .nr_subs = 2 };
	assert_int_equal(pb_bpf_prog_make(&s, &p), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(helpers_get_arguments_and_the_run),
		cmocka_unit_test(callbacks_run_in_either_engine),
		cmocka_unit_test(tail_calls_end_after_33),
		cmocka_unit_test(no_program_no_tail_call),
		cmocka_unit_test(tail_calls_leave_the_callers_frames),
		cmocka_unit_test(tail_calls_leave_the_helper_that_calls_back),
		cmocka_unit_test(tail_calls_change_the_engine),
		cmocka_unit_test(loads_that_fault_give_0),
		cmocka_unit_test(faults_while_programs_come_and_go),
		cmocka_unit_test(other_faults_are_not_ours),
		cmocka_unit_test(no_page_is_writable_and_executable),
		cmocka_unit_test(blinded_code_holds_no_constant),
		cmocka_unit_test(cap_bpf_exempts_from_blinding),
		cmocka_unit_test(runs_are_counted_while_asked),
		cmocka_unit_test(code_is_shown_on_request),
		cmocka_unit_test(loops_to_the_first_instruction),
		cmocka_unit_test(long_programs_get_native_code),
		cmocka_unit_test(handlers_run_programs_in_programs),
		cmocka_unit_test(unsound_programs_are_not_made),
		cmocka_unit_test(frames_are_a_chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
