/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Variables in .kconfig: where their types say that they are, and the value of
 * LINUX_KERNEL_VERSION. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

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

static void kernel_version(void **state)
{
	static const struct {
		const char *signature, *release, *version;
		uint32_t code;
	} cases[] = {
		{ "", "6.1.0", "#1 SMP", 0x060100 },
		{ "", "6.6.87.2-microsoft-standard-WSL2", "#1 SMP", 0x060657 },
		{ "", "6.1.0-44-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.164-1 (2026-03-09)",
		  0x0601a4 },
		{ "", "4.9.337-1", "#1 SMP", 0x0409ff },
		{ "", "6.1.0-44-amd64", "#1 SMP Debian testing", 0x060100 },
		{ "Ubuntu 5.4.0-12.15-generic 5.4.8\n", "5.4.0-12-generic", "#15-Ubuntu SMP",
		  0x050408 },
		{ "nothing\n", "5.4.0-12-generic", "#15-Ubuntu SMP", 0x050400 },
		{ "", "6.1-rc1", "#1 SMP", 0 },
		{ "", "", "", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct utsname u = {};

		strncpy(u.release, cases[i].release, sizeof(u.release) - 1);
		strncpy(u.version, cases[i].version, sizeof(u.version) - 1);
		assert_int_equal(load_kernel_version(cases[i].signature, &u), cases[i].code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offsets), cmocka_unit_test(kernel_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
