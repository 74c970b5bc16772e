/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens objects that no compiler writes: files whose parts are too many, overlap, or refer to each
 * other too often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "maker.h"

static void refused(struct maker *m, const struct pb_bpf_object_opts *opts, const char *why)
{
	struct pb_bpf_object *o;
	char err[256];

	assert_int_equal(maker_open(m, opts, &o, err, sizeof(err)), -EINVAL);
	assert_null(o);
	assert_string_equal(err, why);
}

static void add_btf(struct maker *m, struct maker_types *t)
{
	struct maker_bytes b = {};

	maker_btf(&b, t);
	maker_section(m, ".BTF", SHT_PROGBITS, b.p, b.nr);
	free(b.p);
}

/* The sizes of the variables in .kconfig sum up to 4 GB and 4 bytes. LINUX_KERNEL_VERSION, whose
 * value the loader stores, lies in the middle: if the sum wraps, the loader stores the value 2 GB
 * beyond an allocation of 4 bytes. */
static void kconfig_sizes(void **state)
{
	struct maker_types t = {};
	uint32_t four = maker_int(&t, 4), eight = maker_int(&t, 8), vars[3], names[3];
	struct maker m;

	vars[0] = maker_array(&t, eight, 512);
	vars[1] = maker_array(&t, four, 1024);
	vars[0] = maker_var(&t, "eights", vars[0], BTF_VAR_GLOBAL_EXTERN);
	vars[1] = maker_var(&t, "fours", vars[1], BTF_VAR_GLOBAL_EXTERN);
	vars[2] = maker_var(&t, "LINUX_KERNEL_VERSION", four, BTF_VAR_GLOBAL_EXTERN);
	maker_datasec(&t, ".kconfig", vars, 3, 0);
	maker_begin(&m);
	add_btf(&m, &t);
	names[0] = maker_name(&m, "eights");
	names[1] = maker_name(&m, "fours");
	names[2] = maker_name(&m, "LINUX_KERNEL_VERSION");
	maker_symbol(&m, names[2], STT_NOTYPE, SHN_UNDEF, 0, 0);
	for (uint32_t i = 0; i < 1u << 19; i++) {
		maker_symbol(&m, names[0], STT_NOTYPE, SHN_UNDEF, 0, 0);
		maker_symbol(&m, names[1], STT_NOTYPE, SHN_UNDEF, 0, 0);
	}
	refused(&m, NULL, "the variables in .kconfig are too large for a map");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(kconfig_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
