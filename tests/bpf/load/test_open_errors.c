/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks the errors of opening an object if there is no memory, or if a file can't be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "bpfload/load.h"

static int fail_at;	/* how many more calls of malloc() and calloc() until one fails; 0 or less:
			 * none fails */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return fail_at-- == 1 ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t nr, size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_calloc(size_t nr, size_t size)
{
	return fail_at-- == 1 ? NULL : __real_calloc(nr, size);
}

/* Lets each allocation fail once. Opening the object either reports this, or succeeds: some
 * programs or maps can't be used then. */
static void no_memory(void **state)
{
	struct pb_bpf_object_opts opts = { .types = TARGET, .target = TARGET };
	int failed = 0;

	for (int n = 1;; n++) {
		struct pb_bpf_object *o;
		char err[64] = "not set";
		int ret;

		fail_at = n;
		ret = pb_bpf_object_open(CORE, &opts, &o, err, sizeof(err));
		if (ret) {
			assert_int_equal(ret, -ENOMEM);
			assert_string_equal(err, "no memory");
			assert_null(o);
			failed++;
			continue;
		}
		assert_string_equal(err, "");
		pb_bpf_object_close(o);
		if (fail_at > 0)	/* no allocation has failed */
			break;
	}
	assert_true(failed > 5);
	fail_at = 0;
}

static void missing_types(void **state)
{
	struct pb_bpf_object_opts opts = { .types = "/nonexistent", .target = TARGET };
	struct pb_bpf_object *o;
	char err[64];

	assert_int_equal(pb_bpf_object_open(CORE, &opts, &o, err, sizeof(err)), -ENOENT);
	assert_string_equal(err, "types of /nonexistent: the file can't be read");
	assert_null(o);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_memory), cmocka_unit_test(missing_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
