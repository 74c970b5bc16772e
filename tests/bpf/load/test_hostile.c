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

/* --- parts that refer to many other parts ------------------------------------------ */

#define MANY 20000	/* MANY * MANY is more than the loader's limit on work, 2^28 */
static const char too_often[] = "the object's parts overlap or refer to each other too often";

/* Adds MANY sections of variables, which have their bytes in common. Returns the last one. */
static uint32_t add_variables(struct maker *m)
{
	Elf64_Shdr h = { .sh_name = maker_name(m, ".data.x"), .sh_type = SHT_PROGBITS,
		.sh_offset = maker_append(&m->data, NULL, 8), .sh_size = 8 };

	for (uint32_t i = 1; i < MANY; i++)
		maker_header(m, h);
	return maker_header(m, h);
}

/* Adds a section with one function, whose instructions all have the given code. */
static uint32_t add_func(struct maker *m, uint8_t code, uint32_t nr)
{
	Elf64_Shdr h = { .sh_name = maker_name(m, "socket"), .sh_type = SHT_PROGBITS,
		.sh_flags = SHF_EXECINSTR, .sh_offset = m->data.nr, .sh_size = 8ull * nr };
	struct bpf_insn insn = { .code = code };
	uint32_t section = maker_header(m, h);

	for (uint32_t i = 0; i < nr; i++)
		maker_append(&m->data, &insn, sizeof(insn));
	maker_symbol(m, maker_name(m, "prog"), STT_FUNC, section, 0, h.sh_size);
	return section;
}

/* A program that loads MANY addresses of variables. The variables' map is the last of MANY. */
static void references_to_maps(void **state)
{
	uint32_t var;
	struct pb_bpf_object *o;
	Elf64_Shdr h = { .sh_type = SHT_REL, .sh_size = MANY * sizeof(Elf64_Rel) };
	struct maker m;

	maker_begin(&m);
	var = maker_symbol(&m, maker_name(&m, "var"), STT_OBJECT, add_variables(&m), 0, 8);
	h.sh_info = add_func(&m, BPF_LD | BPF_IMM | BPF_DW, 2 * MANY);
	h.sh_offset = m.data.nr;
	for (uint32_t i = 0; i < MANY; i++)
		maker_append(&m.data, &(Elf64_Rel){ 16 * i, ELF64_R_INFO(var, 1) },
			     sizeof(Elf64_Rel));
	maker_header(&m, h);
	assert_int_equal(maker_open(&m, NULL, &o, NULL, 0), 0);
	assert_int_equal(o->nr_maps, MANY);
	assert_non_null(o->progs[0].why);
	assert_string_equal(o->progs[0].why, too_often);
	pb_bpf_object_close(o);
}

/* MANY sections of variables, each of which may be described by any of MANY types. */
static void types_of_variables(void **state)
{
	struct maker_types t = {};
	struct pb_bpf_object *o;
	struct maker m;

	for (uint32_t i = 0; i < MANY; i++)
		maker_int(&t, 4);
	maker_begin(&m);
	add_btf(&m, &t);
	add_variables(&m);
	assert_int_equal(maker_open(&m, NULL, &o, NULL, 0), 0);
	assert_null(o->maps[0].why);
	assert_non_null(o->maps[MANY - 1].why);
	assert_string_equal(o->maps[MANY - 1].why, too_often);
	pb_bpf_object_close(o);
}

/* MANY externs, each of which is looked for in a configuration of MANY bytes. */
static void lines_of_kconfig(void **state)
{
	struct maker_types t = {};
	char *kconfig = calloc(1, MANY + 1);
	uint32_t number = maker_int(&t, 4), var, name;
	struct maker m;

	assert_non_null(kconfig);
	memset(kconfig, 'x', MANY);
	var = maker_var(&t, "CONFIG_X", number, BTF_VAR_GLOBAL_EXTERN);
	maker_datasec(&t, ".kconfig", &var, 1, 0);
	maker_begin(&m);
	add_btf(&m, &t);
	name = maker_name(&m, "CONFIG_X");
	for (uint32_t i = 0; i < MANY; i++)
		maker_symbol(&m, name, STT_NOTYPE, SHN_UNDEF, 0, 0);
	refused(&m, &(struct pb_bpf_object_opts){ .kconfig = kconfig }, too_often);
	free(kconfig);
}

static uint32_t pointer_to(struct maker_types *t, uint32_t type)
{
	return maker_type(t, "", BTF_KIND_PTR, 0, type);
}

/* Adds the variable of a map of maps to section .maps. Its elements begin at byte 24. */
static void add_map_of_maps(struct maker_types *t)
{
	uint32_t number = maker_int(t, 4), var, values;
	uint32_t type = pointer_to(t, maker_array(t, number, BPF_MAP_TYPE_ARRAY_OF_MAPS));
	uint32_t many = pointer_to(t, maker_array(t, number, MANY));
	uint32_t four = pointer_to(t, maker_array(t, number, 4));

	values = pointer_to(t, maker_type(t, "inner", BTF_KIND_STRUCT, 0, 0));
	values = maker_array(t, values, 0);
	var = maker_type(t, "", BTF_KIND_STRUCT, 4, 24);
	maker_member(t, "type", type, 0);
	maker_member(t, "max_entries", many, 64);
	maker_member(t, "key_size", four, 128);
	maker_member(t, "values", values, 192);
	var = maker_var(t, "outer", var, BTF_VAR_GLOBAL_ALLOCATED);
	maker_datasec(t, ".maps", &var, 1, 24 + 8 * MANY);
}

/* A map with MANY elements, each of which may be any of MANY maps. */
static void elements_of_maps(void **state)
{
	Elf64_Shdr h = { .sh_type = SHT_REL, .sh_size = MANY * sizeof(Elf64_Rel) };
	struct maker_types t = {};
	struct maker m;
	uint32_t map;

	add_map_of_maps(&t);
	maker_begin(&m);
	add_btf(&m, &t);
	h.sh_info = maker_section(&m, ".maps", SHT_PROGBITS, NULL, 24 + 8 * MANY);
	map = maker_symbol(&m, maker_name(&m, "outer"), STT_OBJECT, h.sh_info, 0, 24);
	add_variables(&m);
	h.sh_offset = m.data.nr;
	for (uint32_t i = 0; i < MANY; i++)
		maker_append(&m.data, &(Elf64_Rel){ 24 + 8 * i, ELF64_R_INFO(map, 1) },
			     sizeof(Elf64_Rel));
	maker_header(&m, h);
	refused(&m, NULL, too_often);
}

/* --- parts that overlap -------------------------------------------------------------- */

/* MANY declarations of maps, each of which takes the whole section. */
static void declarations(void **state)
{
	uint32_t section, name;
	struct maker m;

	maker_begin(&m);
	section = maker_section(&m, "maps", SHT_PROGBITS, NULL, MANY);
	name = maker_name(&m, "map");
	for (uint32_t i = 0; i < MANY; i++)
		maker_symbol(&m, name, STT_OBJECT, section, 0, MANY);
	refused(&m, NULL, too_often);
}

/* MANY sections that all have the same relocations. */
static void relocations(void **state)
{
	Elf64_Shdr h = { .sh_type = SHT_REL, .sh_size = 1000 * sizeof(Elf64_Rel) };
	struct maker m;

	maker_begin(&m);
	h.sh_info = add_func(&m, BPF_JMP | BPF_EXIT, 1);
	h.sh_offset = maker_append(&m.data, NULL, h.sh_size);
	for (uint32_t i = 0; i < MANY; i++)
		maker_header(&m, h);
	refused(&m, NULL, too_often);
}

static const char too_large[] = "opening the object takes more than 512 MB of memory";

/* Undefined symbols that all have the same name of 8000 bytes. */
static void undefined_symbols(int nr, const char *why)
{
	char text[8001];
	uint32_t name;
	struct maker m;

	memset(text, 'x', 8000);
	text[8000] = 0;
	maker_begin(&m);
	name = maker_name(&m, text);
	for (int i = 0; i < nr; i++)
		maker_symbol(&m, name, STT_NOTYPE, SHN_UNDEF, 0, 0);
	refused(&m, NULL, why);
}

/* The names take too much work before the symbols take too much memory. */
static void long_names(void **state)
{
	undefined_symbols(2200000, too_often);
}

/* 200 functions that all have the same 4 MB of instructions, each in a section of its own. */
static void instructions(void **state)
{
	Elf64_Shdr h = { .sh_type = SHT_PROGBITS, .sh_flags = SHF_EXECINSTR, .sh_size = 4 << 20 };
	uint32_t name;
	struct maker m;

	maker_begin(&m);
	h.sh_name = maker_name(&m, ".text");
	h.sh_offset = maker_append(&m.data, NULL, h.sh_size);
	name = maker_name(&m, "func");
	for (int i = 0; i < 200; i++)
		maker_symbol(&m, name, STT_FUNC, maker_header(&m, h), 0, h.sh_size);
	refused(&m, NULL, too_large);
}

static void names(void **state)
{
	undefined_symbols(100000, too_large);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(kconfig_sizes), cmocka_unit_test(references_to_maps),
		cmocka_unit_test(types_of_variables), cmocka_unit_test(lines_of_kconfig),
		cmocka_unit_test(elements_of_maps), cmocka_unit_test(declarations),
		cmocka_unit_test(relocations), cmocka_unit_test(long_names),
		cmocka_unit_test(instructions), cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
