/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs own/loops.bpf.c on both engines: loops with may_goto and with numeric iterators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include <patchbay/bpf.h>

static const struct { const char *program; uint32_t result; } expected[] = {
	{ "sum", 499500 },
	{ "sum_each", 40 },
	{ "nested", 16 * 20 + 38 * 38 },
	{ "until_the_bound", 8 << 20 },
	{ "before_the_bound", 499500 },
	{ "in_callbacks", 16 << 20 },
	/* the first call of part() sums up the numbers from 0 to 8; it takes 9 from the iterator,
	 * but doesn't add 9 */
	{ "in_parts", 36 * 1000 + 145 },
	{ "paths_to_callbacks", 45 },
	{ "paths_to_loops", 90 },
	{ "asked_first", 1 },
};

static void run_all(bool interpret)
{
	struct pb_bpf_machine_opts opts = { .interpret = interpret };
	uint64_t ctx[2] = { 0 }, result;
	struct pb_bpf_machine *m;
	char why[256];

	if (pb_bpf_machine_open(LOOPS, &opts, &m, why, sizeof(why)))
		fail_msg("%s", why);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		int prog = pb_bpf_machine_program(m, expected[i].program);
		struct pb_bpf_program_info info;

		if (pb_bpf_machine_load(m, (uint32_t)prog, 0, NULL, 0)) {
			pb_bpf_machine_program_info(m, (uint32_t)prog, &info);
			fail_msg("%s: %s", expected[i].program, info.why);
		}
		assert_int_equal(pb_bpf_machine_run(m, (uint32_t)prog, ctx, &result), 0);
		if (result != expected[i].result)
			fail_msg("%s: %d, not %d", expected[i].program, (int)result,
				 (int)expected[i].result);
	}
	pb_bpf_machine_close(m);
}

static void native(void **state)
{
	run_all(false);
}

static void interpreted(void **state)
{
	run_all(true);
}

static void others_are_refused(void **state)
{
	struct pb_bpf_program_info info;
	struct pb_bpf_machine *m;
	char why[256];
	int prog;

	assert_int_equal(pb_bpf_machine_open(LOOPS, NULL, &m, why, sizeof(why)), 0);
	prog = pb_bpf_machine_program(m, "the_kernels");
	assert_int_not_equal(pb_bpf_machine_load(m, (uint32_t)prog, 0, NULL, 0), 0);
	assert_int_equal(pb_bpf_machine_program_info(m, (uint32_t)prog, &info), 0);
	assert_string_equal(info.why, "the_kernels calls bpf_rcu_read_lock, a kernel function that "
				      "Patchbay doesn't have");
	pb_bpf_machine_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(native),
		cmocka_unit_test(interpreted),
		cmocka_unit_test(others_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
