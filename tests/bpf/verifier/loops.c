/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests loops with may_goto and with numeric iterators. The verifier needn't walk such loops to
 * their end. Accepted programs run on all engines. The verifier must refuse a program that might
 * not end, or that leaks its iterator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "asm.h"
#include "own.h"

#define MOST	300

static char text[1 << 20];

static int load(const char *source, struct own_prog *p)
{
	static struct bpf_insn insns[MOST];
	struct asm_out out = { .insns = insns, .most = MOST };
	int err;

	if (assemble(source, &out))
		fail_msg("%s", out.error);
	text[0] = 0;
	err = own_load(p, BPF_PROG_TYPE_XDP, insns, out.nr, NULL, 0, text, sizeof text);
	if (getenv("LOUD"))
		fprintf(stderr, "%s\n-> %d\n", text, err);
	return err;
}

static void gives(const char *source, uint32_t result)
{
	static const uint8_t packet[64];
	struct own_run r = { .in = packet, .len = sizeof packet };
	struct own_prog p;

	if (load(source, &p))
		fail_msg("refused:\n%s", text);
	for (enum engine e = 0; e < NR_ENGINES; e++) {
		assert_int_equal(own_run(&p, e, &r), 0);
		if (r.retval != result)
			fail_msg("%s: %d, not %d", engine_names[e], (int)r.retval, (int)result);
	}
	own_free(&p);
}

static void refused(const char *source, const char *why)
{
	struct own_prog p;

	if (!load(source, &p)) {
		own_free(&p);
		fail_msg("accepted: %s", source);
	}
	if (!strstr(text, why))
		fail_msg("\"%s\" isn't in\n%s", why,
			 text + (strlen(text) > 1500 ? strlen(text) - 1500 : 0));
}

/* Calls of the iterator's functions. The iterator is at fp - off. */
#define AT(off)		"r1 = r10; r1 += -" #off "; "
#define NEW(off, from, to) AT(off) "r2 = " #from "; r3 = " #to "; call kernel-function#1\n"
#define NEXT(off)	AT(off) "call kernel-function#2\n"
#define DESTROY(off)	AT(off) "call kernel-function#3\n"

/* ---- may_goto ------------------------------------------------------------------------- */

static void test_frame_of_512(void **state)
{
	gives("r1 = 5; *(u64 *)(r10 -512) = r1; *(u64 *)(r10 -8) = r1; r2 = 0\n"
	      "again: may_goto end\n"
	      "r2 += 1; if r2 < 10 goto again\n"
	      "end: r0 = *(u64 *)(r10 -512); r3 = *(u64 *)(r10 -8); r0 += r3; r0 += r2; exit", 20);
}

/* The counter of may_goto is on the stack, between the frames of caller and callee. */
static void test_frames_and_counters(void **state)
{
	/* r9 is 0, but the verifier doesn't know its value */
	gives("r9 = *(u32 *)(r1 +16); r6 = r9; r1 = 11; *(u64 *)(r10 -8) = r1; "
	      "*(u64 *)(r10 -24) = r1\n"
	      "again: may_goto end\n"
	      "r1 = r9; call sub; r6 += r0; r1 = *(u64 *)(r10 -8); r6 += r1; "
	      "r1 = *(u64 *)(r10 -24); r6 += r1\n"
	      "if r6 < 1000 goto again\n"
	      "end: r0 = r6; exit\n"
	      "sub: r0 = r1; r1 = 3; *(u64 *)(r10 -8) = r1; *(u64 *)(r10 -56) = r1\n"
	      "more: may_goto out\n"
	      "r0 += 1; if r0 < 1000 goto more\n"
	      "out: r1 = *(u64 *)(r10 -8); r2 = *(u64 *)(r10 -56); r0 += r1; r0 += r2; exit", 1028);
}

/* The loop changes a register. After the loop, the verifier must not assume the register's value
 * from before the loop. */
static void test_may_goto_iterations_count(void **state)
{
	refused("r6 = 0\n"
		"again: may_goto end\n"
		"r6 += 8; goto again\n"
		"end: r1 = r10; r1 += -64; r1 += r6; r0 = 0; *(u64 *)(r1 +0) = r0; exit",
		"invalid write to stack");
	gives("r6 = 0; r7 = 0\n"
	      "again: may_goto end\n"
	      "r6 += 8; goto again\n"
	      "end: r1 = r10; r1 += -64; r1 += r7; r0 = 0; *(u64 *)(r1 +0) = r0; exit", 0);
}

static void test_endless(void **state)
{
	refused("again: may_goto again\n"
		"r0 = 0; exit", "infinite loop detected at insn 0");
	refused("r0 = 0\n"
		"again: may_goto end\n"
		"inner: goto inner\n"
		"end: exit", "infinite loop detected");
	/* each call of sub starts a new counter, so the loop around the call may be endless */
	refused("again: call sub\n"
		"if r0 != 0 goto again\n"
		"exit\n"
		"sub: r0 = 0; may_goto end; r0 = 1\n"
		"end: exit", "");
	gives("r6 = 0\n"
	      "again: may_goto out\n"
	      "call sub; r6 += r0\n"
	      "if r6 < 9 goto again\n"
	      "out: r0 = r6; exit\n"
	      "sub: r0 = 0; may_goto end; r0 = 1\n"
	      "end: exit", 9);
}

/* Registers are the same in each iteration, but the spilled number differs. When the second
 * iteration starts, no instruction has needed the number's precise value yet. Even so, the verifier
 * must not take the first program's loop for endless. */
static void test_counted_on_the_stack(void **state)
{
	gives("r0 = *(u32 *)(r1 +16); r0 &= 0xff; r1 = 0; *(u64 *)(r10 -8) = r0; r0 = 0\n"
	      "again: r0 = *(u64 *)(r10 -8)\n"
	      "if r0 > 10 goto out\n"
	      "r0 += 1; *(u64 *)(r10 -8) = r0; r0 = 0; goto again\n"
	      "out: r0 = 4; exit", 4);
	refused("r0 = *(u32 *)(r1 +16); r0 &= 0xff; r1 = 0; *(u64 *)(r10 -8) = r0; r0 = 0\n"
		"again: r0 = *(u64 *)(r10 -8)\n"
		"if r0 > 10 goto out\n"
		"*(u64 *)(r10 -8) = r0; r0 = 0; goto again\n"
		"out: r0 = 4; exit", "infinite loop detected");
}

/* ---- iterators: results --------------------------------------------------------------------- */

#define SUM(from, to) \
	"r6 = 0; r7 = 0\n" NEW(8, from, to) "r8 = r0\n" \
	"again: " NEXT(8) "if r0 == 0 goto out\n" \
	"r1 = *(u32 *)(r0 +0); w6 += w1; r7 += 1; goto again\n" \
	"out: " DESTROY(8) "r0 = r6; exit"

static void test_numbers(void **state)
{
	gives(SUM(0, 0), 0);
	gives(SUM(0, 1), 0);
	gives(SUM(5, 10), 35);
	gives(SUM(-3, 3), (uint32_t)-3);
	gives(SUM(10, 5), 0);
	gives(SUM(0x80000000, 0x80000002), 1);
	gives(SUM(0x7ffffffd, 0x7fffffff), (uint32_t)(0x7ffffffdu + 0x7ffffffeu));
	gives(SUM(0x80000000, 0x7fffffff), 0);
}

/* A program that returns the result of bpf_iter_num_new. */
#define NEW_ONLY(from, to) NEW(8, from, to) "r6 = r0\n" DESTROY(8) "r0 = r6; exit"

static void test_new(void **state)
{
	gives(NEW_ONLY(0, 8388608), 0);
	gives(NEW_ONLY(0, 8388609), (uint32_t)-E2BIG);
	gives(NEW_ONLY(1, 0), (uint32_t)-EINVAL);
	gives(NEW_ONLY(0x80000000, 0x7fffffff), (uint32_t)-E2BIG);
	gives(NEW_ONLY(0x7fffffff, 0x7fffffff), 0);
}

static void test_all_of_them(void **state)
{
	gives("r6 = 0\n" NEW(8, -4, 8388604)
	      "again: " NEXT(8) "if r0 == 0 goto out\n"
	      "r6 += 1; goto again\n"
	      "out: " NEXT(8) "if r0 != 0 goto bad\n"
	      DESTROY(8) "r0 = r6; exit\n"
	      "bad: " DESTROY(8) "r0 = 1; exit", 8388608);
}

static void test_nested(void **state)
{
	gives("r6 = 0; r7 = 0\n" NEW(8, 0, 30)
	      "outer: " NEXT(8) "if r0 == 0 goto out\n"
	      NEW(16, 0, 40)
	      "inner: " NEXT(16) "if r0 == 0 goto done\n"
	      NEW(24, 0, 5)
	      "third: " NEXT(24) "if r0 == 0 goto ended\n"
	      "r6 += 1; goto third\n"
	      "ended: " DESTROY(24) "r7 += 1; goto inner\n"
	      "done: " DESTROY(16) "goto outer\n"
	      "out: " DESTROY(8) "r0 = r6; r0 += r7; exit", 7200);
}

static void test_iterator_of_the_caller(void **state)
{
	gives("r6 = 0\n" NEW(16, 3, 9) AT(16) "call sub; r6 = r0\n" DESTROY(16) "r0 = r6; exit\n"
	      "sub: r7 = r1; r6 = 0\n"
	      "again: r1 = r7; call kernel-function#2\n"
	      "if r0 == 0 goto out\n"
	      "r1 = *(u32 *)(r0 +0); r6 += r1; goto again\n"
	      "out: r0 = r6; exit", 33);
}

/* ---- iterators: refused programs ------------------------------------------------------------- */

static void test_states(void **state)
{
	refused(NEXT(8) "r0 = 0; exit", "expected an initialized iter_num as arg #0");
	refused(DESTROY(8) "r0 = 0; exit", "expected an initialized iter_num as arg #0");
	refused(NEW(8, 0, 9) "r0 = 0; exit", "Unreleased reference id=1");
	refused(NEW(8, 0, 9) NEW(8, 0, 9) DESTROY(8) "r0 = 0; exit",
		"expected uninitialized iter_num as arg #0");
	refused(NEW(8, 0, 9) DESTROY(8) NEXT(8) "r0 = 0; exit",
		"expected an initialized iter_num as arg #0");
	refused(NEW(8, 0, 9) DESTROY(8) DESTROY(8) "r0 = 0; exit",
		"expected an initialized iter_num as arg #0");
	refused(NEW(8, 0, 9) "r1 = 1; *(u8 *)(r10 -5) = r1\n" DESTROY(8) "r0 = 0; exit",
		"expected an initialized iter_num as arg #0");
	refused(NEW(8, 0, 9) "r1 = *(u32 *)(r10 -8)\n" DESTROY(8) "r0 = 0; exit",
		"invalid read from stack");
	refused(NEW(8, 0, 9) "r1 = 1; *(u64 *)(r10 -8) = r1; r0 = 0; exit",
		"Unreleased reference id=1");
	refused(NEW(12, 0, 9) DESTROY(12) "r0 = 0; exit", "cannot pass in iter at an offset=-12");
	refused("r2 = 0; r3 = 1; call kernel-function#1\nr0 = 0; exit",
		"expected pointer to an iterator on stack");
	refused(AT(8) "r2 = r10; r3 = 1; call kernel-function#1\nr0 = 0; exit",
		"R2 is not a scalar");
	refused("call kernel-function#9\nr0 = 0; exit", "calling kernel function is not allowed");
	refused("call kernel-function#0\nr0 = 0; exit",
		"invalid kernel function call not eliminated");
	/* a call that the program can't reach is accepted */
	gives("r0 = 3; if r0 == 3 goto out; call kernel-function#0\nout: exit", 3);
}

static void test_elements(void **state)
{
	refused(NEW(8, 0, 9) NEXT(8) "r1 = *(u32 *)(r0 +0)\n" DESTROY(8) "r0 = 0; exit",
		"invalid mem access 'scalar'");
	refused(NEW(8, 0, 9) NEXT(8) "if r0 == 0 goto out; r1 = 1; *(u32 *)(r0 +0) = r1\nout: "
		DESTROY(8)
		"r0 = 0; exit", "cannot write into rdonly_mem");
	refused(NEW(8, 0, 9) NEXT(8) "if r0 == 0 goto out; r1 = *(u64 *)(r0 +0)\nout: " DESTROY(8)
		"r0 = 0; exit",
		"invalid access to memory, mem_size=4 off=0 size=8");
	refused(NEW(8, 0, 9) NEXT(8) "r6 = r0; if r0 == 0 goto out; " DESTROY(8)
		"r0 = *(u32 *)(r6 +0); exit\nout: " DESTROY(8)
		"r0 = 0; exit", "invalid mem access 'scalar'");
}

/* The program has two iterators. Each iteration advances one of them, destroys the other, and makes
 * the other anew. So the loop may never end, and the verifier must refuse the program. */
static void test_iterators_that_renew_each_other(void **state)
{
	refused(NEW(8, 0, 9) NEW(16, 0, 9)
		"again: call bpf_get_prandom_u32#7\n"
		"if r0 > 9 goto other\n"
		NEXT(8) "if r0 == 0 goto out\n"
		DESTROY(16) NEW(16, 0, 9) "goto again\n"
		"other: " NEXT(16) "if r0 == 0 goto out\n"
		DESTROY(8) NEW(8, 0, 9) "goto again\n"
		"out: " DESTROY(8) DESTROY(16) "r0 = 0; exit", "");
	/* if the program makes only one of the iterators anew, the loop ends */
	gives(NEW(8, 0, 9) NEW(16, 0, 9)
	      "again: " NEXT(8) "if r0 == 0 goto out\n"
	      DESTROY(16) NEW(16, 0, 9) "goto again\n"
	      "out: " DESTROY(8) DESTROY(16) "r0 = 0; exit", 0);
}

static void test_loop_around_iterator(void **state)
{
	refused("r6 = 0\n"
		"again: " NEW(8, 0, 9)
		"inner: " NEXT(8) "if r0 == 0 goto out\n"
		"r6 += 1; goto inner\n"
		"out: " DESTROY(8) "goto again", "");
	/* the loop ends only if the first bpf_iter_num_next of a new iterator gives NULL */
	refused("again: " NEW(8, 0, 9) NEXT(8) "if r0 == 0 goto out\n"
		DESTROY(8) "goto again\n"
		"out: " DESTROY(8) "r0 = 0; exit", "");
	gives("again: may_goto end\n"
	      NEW(8, 0, 3) NEXT(8) "if r0 == 0 goto out\n"
	      DESTROY(8) "goto again\n"
	      "out: " DESTROY(8) "\n"
	      "end: r0 = 4; exit", 4);
}

/* After its last number, an iterator gives NULL at each call. So this loop is endless. */
static void test_drained(void **state)
{
	refused(NEW(8, 0, 3)
		"again: " NEXT(8) "goto again", "infinite loop detected");
}

/* ---- precision ------------------------------------------------------------------------------- */

#define WAY(k)	"call bpf_get_prandom_u32#7; if r0 == 0 goto way" #k "; r7 += 1 ; r7 *= 2\n" \
		"way" #k ": "

/* The loop's body has thousands of paths, so an iteration ends in thousands of states. The verifier
 * doesn't keep all of them. After the loop, r6 is added to a pointer to the stack. So in each of
 * these states, the verifier must mark the value from which r6 comes as precise. */
static void many_ends(const char *last, bool good)
{
	char source[4000];
	struct own_prog p;
	int err;

	snprintf(source, sizeof source,
		 "r6 = 0; r8 = 0\n" NEW(512, 0, 3)
		 "again: " NEXT(512) "if r0 == 0 goto out\n"
		 "r7 = 0\n"
		 WAY(1) WAY(2) WAY(3) WAY(4) WAY(5) WAY(6) WAY(7)
		 WAY(8) WAY(9) WAY(10) WAY(11) WAY(12) WAY(13)
		 "r6 = r7; %s\n"
		 "goto again\n"
		 "out: " DESTROY(512)
		 "r1 = r10; r1 += -512; r6 &= 0xfff8; if r6 > 496 goto none; r1 += r6; r0 = 0; "
		 "*(u64 *)(r1 +0) = r0\n"
		 "r1 = r10; r1 += -512; r1 += r8; *(u64 *)(r1 +0) = r0\n"
		 "none: r0 = 0; exit", last);
	err = load(source, &p);
	own_free(&p);
	assert_int_equal(!err, good);
}

static void test_many_ends(void **state)
{
	many_ends("r6 += 0", true);
	/* in one of the states, r8 is 1000 */
	many_ends("if r7 != 0 goto same; r8 = 1000\nsame: r6 += 0", false);
	many_ends("if r7 != 16382 goto same; r8 = 1000\nsame: r6 += 0", false);
}

/* ---- stack slots that aren't counted --------------------------------------------------------- */

#define DEEP(sub) \
	"r1 = 42; *(u64 *)(r10 -512) = r1; call sub; r1 = *(u64 *)(r10 -512); r0 += r1; exit\n" \
	"sub: " sub

/* The kernel inlines the helper (bpf_fastcall), and the inlined helper keeps r1. So a slot that
 * only saves r1 around the call doesn't count toward the size of the stack. */
static void test_saved_around_fast_calls(void **state)
{
	gives(DEEP("*(u64 *)(r10 -8) = r1; call bpf_get_smp_processor_id#8\n"
		   "r1 = *(u64 *)(r10 -8); r0 = r1; exit"), 84);
	gives(DEEP("r2 = 3; *(u64 *)(r10 -8) = r2; *(u64 *)(r10 -16) = r1; "
		   "call bpf_get_smp_processor_id#8\n"
		   "r1 = *(u64 *)(r10 -16); r2 = *(u64 *)(r10 -8); r0 = r1; r0 += r2; exit"),
	      42 + 42 + 3);
	/* the slot is loaded into a register other than r1 */
	refused(DEEP("*(u64 *)(r10 -8) = r1; call bpf_get_smp_processor_id#8\n"
		     "r2 = *(u64 *)(r10 -8); r0 = r2; exit"),
		"combined stack size of 2 calls is 528. Too large");
	/* another instruction reads the slot */
	refused(DEEP("*(u64 *)(r10 -8) = r1; call bpf_get_smp_processor_id#8\n"
		     "r1 = *(u64 *)(r10 -8); r0 = r1; r1 = *(u64 *)(r10 -8); r0 = r1; exit"),
		"combined stack size of 2 calls is 528. Too large");
	/* the helper isn't a bpf_fastcall helper */
	refused(DEEP("*(u64 *)(r10 -8) = r1; call bpf_get_prandom_u32#7\n"
		     "r1 = *(u64 *)(r10 -8); r0 = r1; exit"),
		"combined stack size of 2 calls is 528. Too large");
	/* a jump's target is between the store and the call */
	refused(DEEP("if r1 == 7 goto in; *(u64 *)(r10 -8) = r1\n"
		     "in: call bpf_get_smp_processor_id#8\n"
		     "r1 = *(u64 *)(r10 -8); r0 = r1; exit"),
		"combined stack size of 2 calls is 528. Too large");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame_of_512), cmocka_unit_test(test_frames_and_counters),
		cmocka_unit_test(test_may_goto_iterations_count),
		cmocka_unit_test(test_endless), cmocka_unit_test(test_counted_on_the_stack),
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_new),
		cmocka_unit_test(test_all_of_them), cmocka_unit_test(test_nested),
		cmocka_unit_test(test_iterator_of_the_caller), cmocka_unit_test(test_states),
		cmocka_unit_test(test_elements),
		cmocka_unit_test(test_iterators_that_renew_each_other),
		cmocka_unit_test(test_loop_around_iterator), cmocka_unit_test(test_drained),
		cmocka_unit_test(test_saved_around_fast_calls), cmocka_unit_test(test_many_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
