/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests attach/short_slice.c: the kernel reports the short slice, and the former one afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attach/short_slice.h"

static struct sched_attr read_attr(void)
{
	struct sched_attr a = { 0 };

	assert_int_equal(syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0), 0);
	return a;
}

static void test_restored(void **unused)
{
	struct sched_attr before = read_attr(), during, after;
	uint64_t former = attach_slice_shorten();

	during = read_attr();
	attach_slice_restore(former);
	after = read_attr();
	assert_int_equal(former, before.sched_policy == SCHED_NORMAL ? before.sched_runtime : 0);
	assert_true(!former || during.sched_runtime < before.sched_runtime);
	assert_int_equal(during.sched_nice, before.sched_nice);
	assert_memory_equal(&after, &before, sizeof(after));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_restored) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
