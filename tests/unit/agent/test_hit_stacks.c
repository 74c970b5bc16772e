/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests which stacks for C code at hits become free in a forked child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "arch/arch.h"
#include "arch/x86_64/hit_stacks.h"

/* In a forked child, the stacks of its parent's other threads become free. */
static void child_frees_hit_stacks(void **state)
{
	const uint64_t own = (uint64_t)__builtin_thread_pointer(), other = own + 4096;
	const struct pb_hit_stack_use uses[] = {
		{ .epoch = 3, .owner = own },		/* a hit that a handler has interrupted */
		{ .epoch = 3, .owner = other },
		{ .epoch = 2, .owner = other },
		{ .epoch = 0, .owner = other },		/* a hit in the child */
		{ .epoch = 4, .owner = other },		/* the same, later */
		{ .epoch = 3, .owner = 0 },		/* is being taken */
		{ .epoch = 3, .owner = other },		/* isn't taken */
	};

	for (unsigned i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		*pb_hit_stack_use(i) = uses[i];
	*pb_hit_stack_use(31) = uses[1];
	pb_hit_stacks_used = 0x8000003f;
	pb_hit_stacks_forked(4);
	assert_int_equal(pb_hit_stacks_used, 0x39);
	assert_int_equal(pb_hit_stack_use(0)->owner, own);
	assert_int_equal(pb_hit_stack_use(1)->owner, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(child_frees_hit_stacks) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
