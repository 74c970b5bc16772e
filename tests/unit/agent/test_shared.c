/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of shared jumps, with as many pairs as fit. No two of the jumps overlap, and each pair
 * is found by its addresses. Pairs of a module that is gone make room for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "arch/arch.h"
#include "engine/text/text_priv.h"

#define MOST	16384
#define FIRST	0x7e0000000000ul	/* the modules' address; nothing needs to be mapped there */

static struct pb_module modules[2];

/* Two pairs may be 7 bytes apart, so their targets may be, too. */
static uint64_t first_at(unsigned i)
{
	return FIRST + 7ul * i;
}

struct pb_module *pb_module_at(uint64_t address)
{
	return address - FIRST < 0x1000000 ? &modules[0] : NULL;
}

int pb_text_write(uint64_t at, const void *bytes, size_t len)
{
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void make(unsigned i)
{
	uint64_t first = first_at(i);

	assert_true(pb_shared_make(&modules[i % 2], first, first - 0x1000, first - 0x2000));
}

/* Checks the pairs that have their bit in `of`, one for each of the two modules. */
static void check(unsigned of)
{
	static uint64_t targets[2 * MOST];
	size_t n = 0;

	for (unsigned i = 0; i < MOST; i++) {
		uint64_t second = first_at(i) + PB_JUMP_SHARED, to = pb_shared_target(second);

		if (!(of >> i % 2 & 1)) {
			assert_int_equal(to, 0);
			continue;
		}
		assert_int_not_equal(to, 0);
		assert_int_equal(pb_shared_at(to), second);
		targets[n++] = to;
	}
	qsort(targets, n, sizeof(*targets), compare);
	for (size_t i = 1; i < n; i++)
		assert_true(targets[i] - targets[i - 1] >= PB_JUMP_LEN);
}

static void full_table(void **state)
{
	for (unsigned i = 0; i < MOST; i++)
		make(i);
	assert_false(pb_shared_make(&modules[0], first_at(MOST), FIRST, FIRST));
	check(3);
	pb_shared_remove(&modules[0]);
	check(2);
	for (unsigned i = 0; i < MOST; i += 2)
		make(i);
	check(3);
	pb_shared_remove(&modules[1]);
	pb_shared_remove(&modules[0]);
	check(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(full_table) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
