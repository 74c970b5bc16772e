/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Changes a value in place, and interrupts the change at each instruction. The handler deletes the
 * key and adds another key, which may get the same element. The value of the other key must stay
 * what the handler has written.
 */
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bpf/core/program.h"
#include "bpf/map/map_file.h"
#include "bpf/map/map_hash.h"
#include "bpf/map/map_sys.h"

#define TRAP_FLAG	0x100
#define CPU_SLOTS	3
#define WORDS		4
#define MOST_STEPS	100000

enum { KEY, OTHER, NR_KEYS };

static struct pb_bpf_map map;
static struct pb_bpf_run run = { .cpu_slot = 1, .thread = 1 };
static volatile long step, step_at;
static volatile unsigned reused;

static void fill(uint64_t *value, uint64_t n)
{
	for (int i = 0; i < CPU_SLOTS * WORDS; i++)
		value[i] = n;
}

static uint32_t link_of(uint64_t key)
{
	return pb_bpf_hash_find(&map, pb_bpf_hash_of(&map, &key), &key).link;
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	uint64_t key = KEY, other = OTHER, value[CPU_SLOTS * WORDS];
	uint32_t was;

	if (++step != step_at)
		return;
	was = link_of(key);
	fill(value, OTHER);
	map.ops->remove(&map, &key, NULL);
	pb_bpf_map_update_elem(&map, &other, value, BPF_ANY);
	reused += was && link_of(other) == was;
}

static void set_trap_flag(bool on)
{
	if (on)
		__asm__ volatile("pushf; orl $0x100, (%%rsp); popf" : : : "memory", "cc");
	else
		__asm__ volatile("pushf; andl $~0x100, (%%rsp); popf" : : : "memory", "cc");
}

/* Makes a map with KEY. change() changes the key's value at each step. */
static void test(uint32_t type, bool locked, int (*change)(const uint64_t *value))
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO }, old;
	struct pb_bpf_map_spec spec = { .cpu_slots = CPU_SLOTS,
		.attr = { type, 8, WORDS * 8, 4, 0 },
		.types = { .spin_lock_off = locked ? 0 : -1, .timer_off = -1 } };
	uint64_t key = KEY, other = OTHER, value[CPU_SLOTS * WORDS];
	long steps = 1;

	reused = 0;
	sigaction(SIGTRAP, &sa, &old);
	for (step_at = 1; step_at <= steps && step_at < MOST_STEPS; step_at++) {
		assert_int_equal(pb_bpf_map_create(&map, &spec), 0);
		fill(value, KEY + 100);
		assert_int_equal(pb_bpf_map_update_elem(&map, &key, value, BPF_ANY), 0);
		step = 0;
		set_trap_flag(true);
		change(value);
		set_trap_flag(false);
		steps = step;
		if (!pb_bpf_map_lookup_elem(&map, &other, value, 0))
			for (uint32_t i = locked; i < map.cpu_slots * WORDS; i++)
				assert_int_equal(value[i], OTHER);
		pb_bpf_map_close(&map);
	}
	sigaction(SIGTRAP, &old, NULL);
	assert_int_not_equal(reused, 0);
}

static int change_all(const uint64_t *value)
{
	uint64_t key = KEY;

	return pb_bpf_map_update_elem(&map, &key, value, BPF_ANY);
}

static int change_own_slot(const uint64_t *value)
{
	uint64_t key = KEY;

	return map.ops->update(&map, &key, value, BPF_ANY, &run);
}

static int change_locked(const uint64_t *value)
{
	uint64_t key = KEY;

	return map.ops->update(&map, &key, value, BPF_F_LOCK, &run);
}

static void per_cpu_values_from_outside(void **state)
{
	test(BPF_MAP_TYPE_PERCPU_HASH, false, change_all);
}

static void per_cpu_values_of_a_program(void **state)
{
	test(BPF_MAP_TYPE_PERCPU_HASH, false, change_own_slot);
	test(BPF_MAP_TYPE_LRU_PERCPU_HASH, false, change_own_slot);
}

static void values_with_a_lock(void **state)
{
	test(BPF_MAP_TYPE_HASH, true, change_locked);
}

/* Without a free word in `changing`, a change isn't announced. Then values are still changed. */
static void all_words_are_in_use(void **state)
{
	struct pb_bpf_map_spec spec = { .cpu_slots = CPU_SLOTS,
		.attr = { BPF_MAP_TYPE_PERCPU_HASH, 8, WORDS * 8, 4, 0 },
		.types = { .spin_lock_off = -1, .timer_off = -1 } };
	uint64_t key = KEY, value[CPU_SLOTS * WORDS], out[CPU_SLOTS * WORDS], *words[CHANGING];

	assert_int_equal(pb_bpf_map_create(&map, &spec), 0);
	fill(value, 1);
	assert_int_equal(pb_bpf_map_update_elem(&map, &key, value, BPF_ANY), 0);
	for (int i = 0; i < CHANGING; i++) {
		words[i] = pb_bpf_hash_begin_change(&map, link_of(key));
		assert_non_null(words[i]);
	}
	assert_null(pb_bpf_hash_begin_change(&map, link_of(key)));
	fill(value, 2);
	assert_int_equal(pb_bpf_map_update_elem(&map, &key, value, BPF_ANY), 0);
	assert_int_equal(pb_bpf_map_lookup_elem(&map, &key, out, 0), 0);
	assert_memory_equal(out, value, sizeof(out));
	for (int i = 0; i < CHANGING; i++)
		pb_bpf_hash_end_change(words[i]);
	pb_bpf_map_close(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(per_cpu_values_from_outside),
		cmocka_unit_test(per_cpu_values_of_a_program),
		cmocka_unit_test(values_with_a_lock),
		cmocka_unit_test(all_words_are_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
