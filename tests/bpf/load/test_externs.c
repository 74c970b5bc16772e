/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Variables in .kconfig: where their types say that they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "bpfload/load_priv.h"
#include "maker.h"

/* Two variables: the loader puts the larger one first, although it comes second in BTF. */
static void offsets(void **state)
{
	struct pb_bpf_object_opts opts = { .kconfig = "CONFIG_A=7\nCONFIG_B=9\n" };
	const struct pb_bpf_object_map *map;
	const struct btf_var_secinfo *vars;
	struct maker_types t = {};
	struct maker_bytes b = {};
	struct pb_bpf_object *o;
	uint32_t v[2], id;
	struct maker m;
	char err[256];

	v[0] = maker_var(&t, "CONFIG_A", maker_int(&t, 4), BTF_VAR_GLOBAL_EXTERN);
	v[1] = maker_var(&t, "CONFIG_B", maker_int(&t, 8), BTF_VAR_GLOBAL_EXTERN);
	maker_datasec(&t, ".kconfig", v, 2, 0);
	maker_btf(&b, &t);
	maker_begin(&m);
	maker_section(&m, ".BTF", SHT_PROGBITS, b.p, b.nr);
	free(b.p);
	maker_symbol(&m, maker_name(&m, "CONFIG_A"), STT_NOTYPE, SHN_UNDEF, 0, 0);
	maker_symbol(&m, maker_name(&m, "CONFIG_B"), STT_NOTYPE, SHN_UNDEF, 0, 0);
	if (maker_open(&m, &opts, &o, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(o->nr_maps, 1);
	map = &o->maps[0];
	id = map->types.btf_value;
	assert_int_equal(id, pb_bpf_btf_find(o->btf, ".kconfig", BTF_KIND_DATASEC));
	vars = pb_btf_vars(pb_bpf_btf_type(o->btf, id));
	assert_int_equal(vars[0].type, v[0]);
	assert_int_equal(vars[0].offset, 8);
	assert_int_equal(vars[1].offset, 0);
	assert_int_equal(*(const uint32_t *)((const char *)map->contents + vars[0].offset), 7);
	assert_int_equal(*(const uint64_t *)((const char *)map->contents + vars[1].offset), 9);
	pb_bpf_object_close(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offsets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
