/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Verifies programs that copy kernel pointers inside a map's value. The verifier compares the names
 * of the structures to which the pointers point. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/map/map_file.h"
#include "bpfload/load_btf.h"
#include "bpfload/load_make.h"
#include "../common/insns.h"
#include "../common/reopen.h"
#include "maker.h"

static uint32_t pointer_to(struct maker_types *t, uint32_t type)
{
	return maker_type(t, "", BTF_KIND_PTR, 0, type);
}

static uint32_t kptr_to(struct maker_types *t, const char *name)
{
	uint32_t type = maker_type(t, name, BTF_KIND_STRUCT, 0, 8);

	return pointer_to(t, maker_type(t, "kptr", BTF_KIND_TYPE_TAG, 0, type));
}

/* Makes the types of a map whose values have two pointers to struct one and one to struct two:
 * struct { struct one __kptr *a, *b; struct two __kptr *other; } */
static struct maker_bytes make_types(void)
{
	struct maker_types t = {};
	struct maker_bytes b = {};
	uint32_t number = maker_int(&t, 4), one = kptr_to(&t, "one"), two = kptr_to(&t, "two");
	uint32_t array = pointer_to(&t, maker_array(&t, number, BPF_MAP_TYPE_ARRAY));
	uint32_t single = pointer_to(&t, maker_array(&t, number, 1)), value, key, var;

	value = maker_type(&t, "pointers", BTF_KIND_STRUCT, 3, 24);
	maker_member(&t, "a", one, 0);
	maker_member(&t, "b", one, 64);
	maker_member(&t, "other", two, 128);
	value = pointer_to(&t, value);
	key = pointer_to(&t, number);
	var = maker_type(&t, "", BTF_KIND_STRUCT, 4, 32);
	maker_member(&t, "type", array, 0);
	maker_member(&t, "max_entries", single, 64);
	maker_member(&t, "key", key, 128);
	maker_member(&t, "value", value, 192);
	var = maker_var(&t, "pointers", var, BTF_VAR_GLOBAL_ALLOCATED);
	maker_datasec(&t, ".maps", &var, 1, 32);
	maker_btf(&b, &t);
	return b;
}

/* Adds a program that copies the pointer at offset 0 of the map's value to offset `to`. */
static void add_prog(struct maker *m, const char *name, uint32_t map, int16_t to)
{
	const struct bpf_insn insns[] = {
		BPF_ST_MEM(BPF_W, 10, -4, 0),
		BPF_MOV64_REG(2, 10),
		BPF_ALU64_IMM(BPF_ADD, 2, -4),
		BPF_LD_IMM64_RAW(1, 0, 0),	/* the relocation puts the map here */
		BPF_CALL_FN(BPF_FUNC_map_lookup_elem),
		BPF_JMP_IMM(BPF_JEQ, 0, 0, 2),
		BPF_LDX_MEM(BPF_DW, 1, 0, 0),
		BPF_STX_MEM(BPF_DW, 0, 1, to),
		BPF_MOV64_IMM(0, 0),
		BPF_EXIT_INSN(),
	};
	Elf64_Rel rel = { .r_offset = 3 * 8, .r_info = ELF64_R_INFO(map, 1) };
	uint32_t code = maker_header(m, (Elf64_Shdr){ .sh_name = maker_name(m, "socket"),
		.sh_type = SHT_PROGBITS, .sh_flags = SHF_EXECINSTR,
		.sh_offset = maker_append(&m->data, insns, sizeof(insns)),
		.sh_size = sizeof(insns) });

	maker_header(m, (Elf64_Shdr){ .sh_type = SHT_REL, .sh_info = code,
		.sh_offset = maker_append(&m->data, &rel, sizeof(rel)), .sh_size = sizeof(rel) });
	maker_symbol(m, maker_name(m, name), STT_FUNC, code, 0, sizeof(insns));
}

static struct pb_bpf_object *open_object(void)
{
	struct maker_bytes types = make_types();
	struct pb_bpf_object_opts opts = {};
	struct pb_bpf_btf *target;
	struct pb_bpf_object *o;
	const char *why;
	struct maker m;
	char err[256];
	uint32_t map;

	assert_int_equal(pb_bpf_btf_open(types.p, types.nr, &target, &why), 0);
	opts.target_btf = target;
	maker_begin(&m);
	maker_section(&m, ".BTF", SHT_PROGBITS, types.p, types.nr);
	map = maker_section(&m, ".maps", SHT_PROGBITS, NULL, 32);
	map = maker_symbol(&m, maker_name(&m, "pointers"), STT_OBJECT, map, 0, 32);
	add_prog(&m, "same", map, 8);
	add_prog(&m, "other", map, 16);
	if (maker_open(&m, &opts, &o, err, sizeof(err)))
		fail_msg("%s", err);
	pb_bpf_btf_close(target);
	free(types.p);
	return o;
}

static int verify(struct pb_bpf_made *m, const char *name, struct pb_bpf_text *log)
{
	int i = pb_bpf_object_prog(m->object, name), err;

	assert_true(i >= 0);
	log->len = 0;
	err = pb_bpf_make_prog(m, (uint32_t)i, log, 2);
	if (!err != !m->progs[i].why)
		fail_msg("%s: %d, %s", name, err, m->progs[i].why ? m->progs[i].why : "no reason");
	return err;
}

static void verify_all(int (*find)(void *arg, const struct pb_bpf_object_map *map,
				   const struct pb_bpf_map_spec *spec, struct pb_bpf_map *found))
{
	struct pb_bpf_make_opts opts = { .caps = PB_BPF_CAP_ALL, .cpu_slots = 1, .find = find };
	static char buf[1 << 16];
	struct pb_bpf_text log = { .buf = buf, .size = sizeof(buf) };
	struct pb_bpf_object *o = open_object();
	struct pb_bpf_made *m;

	assert_int_equal(pb_bpf_make(o, &opts, &m), 0);
	if (!m->maps[0].map)
		fail_msg("%s", m->maps[0].why);
	assert_int_equal(m->maps[0].map->types.nr_kptrs, 3);
	assert_int_equal(verify(m, "same", &log), 0);
	assert_non_null(strstr(buf, "ptr_or_null_one("));
	assert_int_equal(verify(m, "other", &log), -EACCES);
	assert_non_null(strstr(buf, "expected=ptr_two or untrusted_ptr_two"));
	assert_int_equal(m->maps[0].map->types.kptrs[2].size, 8);
	pb_bpf_made_free(m);
	pb_bpf_object_close(o);
}

static void new_map(void **state)
{
	verify_all(NULL);
}

/* Attaches the map as another process sees it: its file has no names of structures. */
static int attach(void *arg, const struct pb_bpf_object_map *map,
		  const struct pb_bpf_map_spec *spec, struct pb_bpf_map *found)
{
	struct pb_bpf_map made;
	int err;

	assert_int_equal(pb_bpf_map_create(&made, spec), 0);
	err = pb_bpf_map_attach(found, reopen(made.fd), PB_BPF_MAP_READ | PB_BPF_MAP_WRITE);
	pb_bpf_map_close(&made);
	return err;
}

static void attached_map(void **state)
{
	verify_all(attach);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_map), cmocka_unit_test(attached_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
