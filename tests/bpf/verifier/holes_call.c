/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * More programs like those of holes.c: their calls are unsafe, and the verifier must refuse them.
 * The programs call global functions, helpers that move the packet, and callbacks. Most programs
 * have a harmless variant.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_global_function_of_six),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
