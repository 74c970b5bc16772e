/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The maps of the kernel's tests, and the programs in the two program arrays. If Patchbay doesn't
 * support a map's type, programs that use the map are verified, but don't run.
 */
#include "kernel_tests.h"

#define MAP(type_, key, value, max, flags_, ...) { \
	.attr = { (type_), (key), (value), (max), (flags_) }, .name = "test_map", .cpu_slots = 1, \
	.types = { .spin_lock_off = -1, .timer_off = -1, __VA_ARGS__ } }

static const struct pb_bpf_map_spec specs[MAX_NR_MAPS] = {
	MAP(BPF_MAP_TYPE_HASH, 8, 8, 1, BPF_F_NO_PREALLOC),
	MAP(BPF_MAP_TYPE_HASH, 8, sizeof(struct test_val), 1, BPF_F_NO_PREALLOC),
	MAP(BPF_MAP_TYPE_HASH, 8, sizeof(struct other_val), 1, BPF_F_NO_PREALLOC),
	MAP(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct test_val), 1, 0),
	MAP(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 4, 0),
	MAP(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 8, 0),
	{ .attr = { BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 1, 0 },
	  .inner = { BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0 },
	  .types = { .spin_lock_off = -1, .timer_off = -1 }, .cpu_slots = 1 },
	MAP(BPF_MAP_TYPE_CGROUP_STORAGE, 16, TEST_DATA_LEN, 0, 0),
	MAP(BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE, 16, TEST_DATA_LEN, 0, 0),
	MAP(BPF_MAP_TYPE_SOCKMAP, 4, 4, 1, 0),
	MAP(BPF_MAP_TYPE_SOCKHASH, 4, 4, 1, 0),
	MAP(BPF_MAP_TYPE_XSKMAP, 4, 4, 1, 0),
	MAP(BPF_MAP_TYPE_STACK_TRACE, 4, 8, 1, 0),
	MAP(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0, .spin_lock_off = 4, .btf_key = 1, .btf_value = 3),
	MAP(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct test_val), 1, BPF_F_RDONLY_PROG),
	MAP(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct test_val), 1, BPF_F_WRONLY_PROG),
	MAP(BPF_MAP_TYPE_ARRAY, 4, 1, 1, 0),
	MAP(BPF_MAP_TYPE_SK_STORAGE, 4, 8, 0, BPF_F_NO_PREALLOC, .spin_lock_off = 4, .btf_key = 1,
	    .btf_value = 3),
	MAP(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 1, 0),
	MAP(BPF_MAP_TYPE_REUSEPORT_SOCKARRAY, 4, 8, 1, 0),
	MAP(BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0),
	MAP(BPF_MAP_TYPE_ARRAY, 4, 16, 1, 0, .timer_off = 0, .btf_key = 1, .btf_value = 5),
	MAP(BPF_MAP_TYPE_ARRAY, 4, 24, 1, 0, .btf_key = 1, .btf_value = 14, .nr_kptrs = 3,
	    .kptrs = { { 0, 6, 32, "prog_test_ref_kfunc", false },
		       { 8, 6, 32, "prog_test_ref_kfunc", true },
		       { 16, 7, 0, "prog_test_member", true } }),
};
struct pb_bpf_map table_maps[MAX_NR_MAPS];
static bool real[MAX_NR_MAPS];

/* The programs of the two program arrays. The three programs of an array have ids 1, 2 and 3. */
static struct pb_bpf_prog *array_progs[2][3];

static void *find(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
	struct pb_bpf_prog **progs = o->arg;

	return kind == PB_BPF_OBJECT_PROG && id && id <= 3 ? progs[id - 1] : NULL;
}

static int64_t get(const struct pb_bpf_objects *o, uint32_t kind, uint32_t handle)
{
	return handle;
}

static void put(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
}

static const struct pb_bpf_objects objects[2] = {
	{ find, get, put, array_progs[0] }, { find, get, put, array_progs[1] },
};

void table_open_maps(void)
{
	const struct test_val value = { .index = 7 * sizeof(int), .foo[6] = (int)0xabcdef12 };
	uint32_t zero = 0;

	for (int i = 0; i < MAX_NR_MAPS; i++) {
		real[i] = !pb_bpf_map_create(&table_maps[i], &specs[i]);
		if (!real[i])
			table_maps[i] = (struct pb_bpf_map){
				.attr = specs[i].attr, .types = specs[i].types, .name = "test_map"
			};
	}
	/* Map 22 has pointers to named types. A map's shared memory doesn't have the names, so
	 * they are set here, in this process's view of the map. */
	table_maps[22].types = specs[22].types;
	table_maps[4].objects = &objects[0];
	table_maps[5].objects = &objects[1];
	for (int i = 0; i < MAX_NR_MAPS; i++)
		if (real[i] && specs[i].attr.type == BPF_MAP_TYPE_ARRAY &&
		    specs[i].attr.value_size == sizeof value &&
		    pb_bpf_map_update_elem(&table_maps[i], &zero, &value, 0))
			abort();
}

void table_close_maps(void)
{
	for (int i = 0; i < MAX_NR_MAPS; i++)
		if (real[i])
			pb_bpf_map_close(&table_maps[i]);
	for (int i = 0; i < 6; i++) {
		pb_bpf_prog_free(array_progs[i / 3][i % 3]);
		array_progs[i / 3][i % 3] = NULL;
	}
}

void table_fix_up(struct bpf_test *t, struct bpf_insn *insns)
{
	int *const lists[MAX_NR_MAPS] = {
		t->fixup_map_hash_8b, t->fixup_map_hash_48b, t->fixup_map_hash_16b,
		t->fixup_map_array_48b, t->fixup_prog1, t->fixup_prog2, t->fixup_map_in_map,
		t->fixup_cgroup_storage, t->fixup_percpu_cgroup_storage, t->fixup_map_sockmap,
		t->fixup_map_sockhash, t->fixup_map_xskmap, t->fixup_map_stacktrace,
		t->fixup_map_spin_lock, t->fixup_map_array_ro, t->fixup_map_array_wo,
		t->fixup_map_array_small, t->fixup_sk_storage_map, t->fixup_map_event_output,
		t->fixup_map_reuseport_array, t->fixup_map_ringbuf, t->fixup_map_timer,
		t->fixup_map_kptr,
	};

	for (int m = 0; m < MAX_NR_MAPS; m++)
		for (int *i = lists[m]; *i; i++)
			insns[*i].imm = FIRST_FD + m;
}

bool table_has_maps(const struct pb_bpf_verify *v)
{
	for (uint32_t i = 0; i < v->nr; i++)
		if (v->insns[i].code == (BPF_LD | BPF_IMM | BPF_DW) && v->facts->insns[i].map &&
		    !real[v->facts->insns[i].map - 1 - FIRST_FD])
			return false;
	return true;
}

/* ---- program arrays -------------------------------------------------------------------------- */

static struct pb_bpf_prog *make_insns(uint32_t type, const struct bpf_insn *insns, uint32_t nr,
				      struct pb_bpf_map *map)
{
	struct pb_bpf_verify v = { .type = pb_bpf_type_of(type), .caps = PB_BPF_CAP_ALL,
				   .gpl = true, .insns = insns, .nr = nr, .maps = &map,
				   .nr_maps = 1, .mem = &table_mem };
	struct pb_bpf_prog *p = pb_bpf_verify(&v) ? NULL : table_make_prog(&v);

	pb_bpf_facts_free(&table_mem, v.facts);
	return p;
}

void table_fill_prog_array(uint32_t type, int n, const uint32_t keys[3])
{
	const struct bpf_insn first[] = { BPF_MOV64_IMM(BPF_REG_0, 42), BPF_EXIT_INSN() };
	const struct bpf_insn last[] = { BPF_MOV64_IMM(BPF_REG_0, 24), BPF_EXIT_INSN() };
	const struct bpf_insn loop[] = {
		BPF_MOV64_IMM(BPF_REG_3, (int)keys[1]), BPF_LD_MAP_FD(BPF_REG_2, 0),
		BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_tail_call),
		BPF_MOV64_IMM(BPF_REG_0, 41), BPF_EXIT_INSN(),
	};

	array_progs[n][0] = make_insns(type, first, 2, NULL);
	array_progs[n][1] = make_insns(type, loop, 6, &table_maps[4 + n]);
	array_progs[n][2] = make_insns(type, last, 2, NULL);
	for (uint32_t i = 0; i < 3; i++)
		if (!array_progs[n][i] ||
		    pb_bpf_map_update_elem(&table_maps[4 + n], &keys[i], &(uint32_t){ i + 1 },
					   BPF_ANY))
			abort();
}
