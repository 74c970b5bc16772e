/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the table of stacks, and the links between stacks (reader/call_stacks.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "reader/call_stacks.h"

#define PID	100
#define IMAGE	1

/* After an exec, ids begin again, but the stacks are others. */
static void test_keys(void **state)
{
	struct pb_stacks *s = pb_stacks_new();
	struct pb_call_stack *own = pb_stacks_get(s, PID, 1, IMAGE, 0);
	struct pb_call_stack *co = pb_stacks_get(s, PID, 1, IMAGE, 7);

	assert_ptr_equal(pb_stacks_get(s, PID, 1, IMAGE, 0), own);
	assert_ptr_equal(pb_stacks_get(s, PID, 1, IMAGE + 1, 0), own);
	assert_ptr_not_equal(pb_stacks_get(s, PID, 2, IMAGE, 0), own);
	assert_ptr_equal(pb_stacks_get(s, PID, 2, IMAGE, 7), co);
	assert_ptr_not_equal(pb_stacks_get(s, PID, 1, IMAGE + 1, 7), co);
	assert_ptr_not_equal(pb_stacks_get(s, PID + 1, 1, IMAGE, 7), co);
	pb_stacks_free(s);
}

static void check_ring(unsigned nr)
{
	struct pb_stacks *s = pb_stacks_new();
	struct pb_call_stack *prev = pb_stacks_get(s, PID, 1, IMAGE, 0), *to;
	unsigned links = 0;

	for (unsigned i = 0; i < 3 * nr; i++) {
		to = pb_stacks_get(s, PID, 1, IMAGE, 1 + i % nr);
		assert_non_null(to);
		pb_stack_switch(prev, to);
		prev = to;
	}
	for (; prev; prev = prev->from)
		assert_true(links++ <= nr);
	pb_stacks_free(s);
}

/* Coroutines switch to each other in a ring. The links `from` must not become a ring, even if it is
 * longer than a search of the links. */
static void test_ring(void **state)
{
	check_ring(3);
	check_ring(64);
	check_ring(100);
}

/* Ids that a hash without a secret, h = id * FACTOR and h ^ h >> 29, maps to one bucket. With one
 * bucket, the test doesn't end. */
#define FACTOR	0x9e3779b97f4a7c15ull
#define NR	(1u << 20)

static uint64_t inverse(uint64_t odd)
{
	uint64_t x = odd;

	for (int i = 0; i < 6; i++)
		x *= 2 - odd * x;
	return x;
}

static void test_collisions(void **state)
{
	struct pb_stacks *s = pb_stacks_new();
	uint64_t back = inverse(FACTOR), owner = (uint64_t)PID << 32 ^ PID;

	for (uint64_t i = 1; i < NR; i++) {
		uint64_t h = i << 32, id;

		h ^= h >> 29 ^ h >> 58;
		id = h * back ^ owner;
		if (id)
			assert_non_null(pb_stacks_get(s, PID, 1, IMAGE, id));
	}
	pb_stacks_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys), cmocka_unit_test(test_ring),
		cmocka_unit_test(test_collisions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
