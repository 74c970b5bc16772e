/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Maps whose values have special fields: a spin lock, a timer or a kernel pointer. Only some types
 * may have them, and an update must not overwrite them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "bpf/core/program.h"
#include "bpf/map/map_file.h"
#include "bpf/map/map_sys.h"

#define CPU_SLOTS 3

enum { LOCK = 1, TIMER = 2, KPTR = 4 };

/* fields: the fields that maps of this type may have */
static const struct {
	uint32_t type, fields, flags;
} types[] = {
	{ BPF_MAP_TYPE_HASH, LOCK | TIMER | KPTR, 0 },
	{ BPF_MAP_TYPE_ARRAY, LOCK | TIMER | KPTR, 0 },
	{ BPF_MAP_TYPE_LRU_HASH, TIMER | KPTR, 0 },
	{ BPF_MAP_TYPE_PERCPU_HASH, KPTR, 0 },
	{ BPF_MAP_TYPE_PERCPU_ARRAY, KPTR, 0 },
	{ BPF_MAP_TYPE_LRU_PERCPU_HASH, KPTR, 0 },
	{ BPF_MAP_TYPE_LPM_TRIE, 0, BPF_F_NO_PREALLOC },
	{ BPF_MAP_TYPE_STACK_TRACE, 0, 0 },
	{ BPF_MAP_TYPE_QUEUE, 0, 0 },
	{ BPF_MAP_TYPE_STACK, 0, 0 },
};

static struct pb_bpf_map_spec spec_of(size_t i, uint32_t field, uint32_t flags)
{
	bool queue = types[i].type == BPF_MAP_TYPE_QUEUE || types[i].type == BPF_MAP_TYPE_STACK;
	bool trie = types[i].type == BPF_MAP_TYPE_LPM_TRIE;

	return (struct pb_bpf_map_spec){
		.attr = { types[i].type, queue ? 0 : trie ? 8 : 4, 24, 8, types[i].flags | flags },
		.cpu_slots = CPU_SLOTS,
		.types = { .spin_lock_off = field == LOCK ? 8 : -1,
			   .timer_off = field == TIMER ? 8 : -1, .nr_kptrs = field == KPTR,
			   .kptrs = { { .off = 8, .btf_id = 1, .size = 8, .name = "" } } },
	};
}

static void check(size_t i, uint32_t field, uint32_t flags, int expected)
{
	struct pb_bpf_map_spec spec = spec_of(i, field, flags);
	struct pb_bpf_map m;
	int err = pb_bpf_map_create(&m, &spec);

	if (err != expected)
		fail_msg("type %u, field %u, flags %#x: %d, not %d", types[i].type, field, flags,
			 err, expected);
	if (!err)
		pb_bpf_map_close(&m);
}

static void which_types(void **state)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		for (uint32_t field = LOCK; field <= KPTR; field *= 2) {
			check(i, 0, 0, 0);
			check(i, field, 0, types[i].fields & field ? 0 : -EOPNOTSUPP);
			if (!(types[i].fields & field))
				continue;
			check(i, 0, BPF_F_RDONLY_PROG, 0);
			check(i, field, BPF_F_RDONLY_PROG, -EACCES);
			check(i, field, BPF_F_WRONLY_PROG, field == KPTR ? -EACCES : 0);
		}
}

/* Returns the kernel pointer in the value of this per-CPU slot. */
static uint64_t *pointer(struct pb_bpf_map *m, uint32_t key, uint32_t cpu_slot)
{
	struct pb_bpf_run run = { .cpu_slot = cpu_slot, .thread = 1 };
	char *value = m->ops->lookup(m, &key, &run);

	assert_non_null(value);
	return (uint64_t *)(value + 8);
}

static void updates(struct pb_bpf_map *m)
{
	struct pb_bpf_run run = { .cpu_slot = 1, .thread = 1 };
	uint64_t in[3 * CPU_SLOTS], out[3 * CPU_SLOTS];
	uint32_t key = 2;

	for (int i = 0; i < 3 * CPU_SLOTS; i++)
		in[i] = 100 + (uint64_t)i;
	assert_int_equal(pb_bpf_map_update_elem(m, &key, in, 0), 0);
	for (uint32_t c = 0; c < m->cpu_slots; c++) {
		assert_int_equal(*pointer(m, key, c), 0);
		*pointer(m, key, c) = 7 + c;
	}
	assert_int_equal(m->ops->update(m, &key, in, 0, &run), 0);
	assert_int_equal(*pointer(m, key, 1), m->cpu_slots > 1 ? 8 : 7);
	assert_int_equal(pb_bpf_map_update_elem(m, &key, in, 0), 0);
	assert_int_equal(pb_bpf_map_lookup_elem(m, &key, out, 0), 0);
	for (uint32_t c = 0; c < m->cpu_slots; c++) {
		assert_int_equal(*pointer(m, key, c), 7 + c);
		assert_int_equal(out[3 * c], in[3 * c]);
		assert_int_equal(out[3 * c + 1], 0);
		assert_int_equal(out[3 * c + 2], in[3 * c + 2]);
	}
}

/* The element of a deleted key is used for the next key, whose pointer must be 0. */
static void reuse(struct pb_bpf_map *m)
{
	uint64_t in[3 * CPU_SLOTS] = { 0 };

	for (uint32_t key = 10; key < 1000; key++) {
		assert_int_equal(pb_bpf_map_update_elem(m, &key, in, 0), 0);
		for (uint32_t c = 0; c < m->cpu_slots; c++) {
			assert_int_equal(*pointer(m, key, c), 0);
			*pointer(m, key, c) = 1;
		}
		assert_int_equal(pb_bpf_map_delete_elem(m, &key), 0);
	}
}

static void pointers(void **state)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct pb_bpf_map_spec spec = spec_of(i, KPTR, 0);
		struct pb_bpf_map m;

		/* an update of a hash that isn't per CPU makes a new element */
		if (types[i].type == BPF_MAP_TYPE_HASH || types[i].type == BPF_MAP_TYPE_LRU_HASH ||
		    pb_bpf_map_create(&m, &spec))
			continue;
		updates(&m);
		if (pb_bpf_map_is_hash(&m))
			reuse(&m);
		pb_bpf_map_close(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_types), cmocka_unit_test(pointers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
