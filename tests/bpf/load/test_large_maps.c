/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Objects whose maps take much memory when they are made. The file can be small: a ring buffer of 2
 * GB needs 20 bytes of it, and sections of variables may have their bytes in common. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "bpf/map/map_file.h"
#include "bpfload/load_make.h"
#include "maker.h"

#define LIMIT	(1u << 20)

typedef int find_fn(void *arg, const struct pb_bpf_object_map *map,
		    const struct pb_bpf_map_spec *spec, struct pb_bpf_map *found);

/* Makes the maps of an object within LIMIT. All but the last must be made. The last one is made if
 * last_is_made is set. Otherwise it would need more memory. */
static void check_with(struct maker *maker, uint32_t nr, find_fn *find, bool last_is_made)
{
	struct pb_bpf_make_opts opts = { .caps = PB_BPF_CAP_ALL, .cpu_slots = 2, .memory = LIMIT,
		.find = find };
	struct pb_bpf_object *o;
	struct pb_bpf_made *m;
	char err[256];

	if (maker_open(maker, NULL, &o, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(o->nr_maps, nr);
	assert_int_equal(pb_bpf_make(o, &opts, &m), 0);
	for (uint32_t i = 0; i < nr - !last_is_made; i++)
		if (!m->maps[i].map)
			fail_msg("map %u: %s", i, m->maps[i].why);
	if (!last_is_made) {
		assert_null(m->maps[nr - 1].map);
		assert_non_null(strstr(m->maps[nr - 1].why, "Cannot allocate memory"));
	}
	pb_bpf_made_free(m);
	pb_bpf_object_close(o);
}

static void check(struct maker *maker, uint32_t nr)
{
	check_with(maker, nr, NULL, false);
}

/* Adds maps in the old form: type, key_size, value_size, max_entries, flags. */
static void add_maps(struct maker *m, const uint32_t (*maps)[5], uint32_t nr)
{
	uint32_t section = maker_section(m, "maps", SHT_PROGBITS, maps, nr * sizeof(*maps));

	for (uint32_t i = 0; i < nr; i++) {
		char name[] = { 'm', (char)('0' + i), 0 };

		maker_symbol(m, maker_name(m, name), STT_OBJECT, section, i * sizeof(*maps),
			     sizeof(*maps));
	}
}

static void check_rings(find_fn *find, bool last_is_made)
{
	static const uint32_t maps[][5] = {
		{ BPF_MAP_TYPE_RINGBUF, 0, 0, LIMIT / 2, 0 },
		{ BPF_MAP_TYPE_RINGBUF, 0, 0, LIMIT / 2, 0 },
		{ BPF_MAP_TYPE_RINGBUF, 0, 0, LIMIT / 2, 0 },
	};
	struct maker m;

	maker_begin(&m);
	add_maps(&m, maps, 3);
	check_with(&m, 3, find, last_is_made);
}

static void rings(void **state)
{
	check_rings(NULL, false);
}

/* The limit also holds for maps that the caller makes, which may be pinned. */
static int make_new(void *arg, const struct pb_bpf_object_map *map,
		    const struct pb_bpf_map_spec *spec, struct pb_bpf_map *found)
{
	int err = pb_bpf_map_create(found, spec);

	return err ? err : PB_BPF_MAP_IS_NEW;
}

static void made_by_caller(void **state)
{
	check_rings(make_new, false);
}

/* Maps that exist take no more memory. */
static int find_existing(void *arg, const struct pb_bpf_object_map *map,
			 const struct pb_bpf_map_spec *spec, struct pb_bpf_map *found)
{
	return pb_bpf_map_create(found, spec);
}

static void existing(void **state)
{
	check_rings(find_existing, true);
}

/* Without a limit of the caller, the largest ring buffer can be made together with other maps, if
 * there is enough memory. */
static void limit(void **state)
{
	struct pb_bpf_map_spec ring = {
		.attr = { BPF_MAP_TYPE_RINGBUF, 0, 0, 1u << 31, 0 }, .cpu_slots = 1,
		.types = { .spin_lock_off = -1, .timer_off = -1 },
	};

	assert_true(pb_bpf_map_written(&ring) >= 1ull << 31);
	assert_true(pb_bpf_make_memory(UINT64_MAX) >= pb_bpf_map_written(&ring) + (1ull << 30));
	assert_int_equal(pb_bpf_make_memory(UINT64_MAX), 1ull << 32);
	assert_int_equal(pb_bpf_make_memory(3ull << 30), 3ull << 30);
	assert_int_equal(pb_bpf_make_memory(1), 1);
	assert_true(pb_bpf_make_memory(0) > 0 && pb_bpf_make_memory(0) <= 1ull << 32);
}

static void hashes(void **state)
{
	static const uint32_t maps[][5] = {
		{ BPF_MAP_TYPE_HASH, 8, 8, 1000, 0 },
		{ BPF_MAP_TYPE_LRU_HASH, 8, 8, LIMIT / 8, 0 },
	};
	struct maker m;

	maker_begin(&m);
	add_maps(&m, maps, 2);
	check(&m, 2);
}

static void variables(void **state)
{
	struct maker m;
	Elf64_Shdr h = { .sh_type = SHT_PROGBITS, .sh_size = LIMIT / 2 - 8 };

	maker_begin(&m);
	h.sh_offset = maker_append(&m.data, NULL, h.sh_size);
	h.sh_name = maker_name(&m, ".data.x");
	for (int i = 0; i < 3; i++)
		maker_header(&m, h);
	check(&m, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings), cmocka_unit_test(made_by_caller),
		cmocka_unit_test(existing), cmocka_unit_test(hashes), cmocka_unit_test(variables),
		cmocka_unit_test(limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
