/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Interrupts operations of maps at each instruction. The signal handler runs other operations on
 * the same key. So the test finds the races that other threads and processes could cause.
 *
 * - While a value is changed in place, the handler deletes the key and adds another key, which may
 *   get the same element. The value of the other key must stay what the handler has written.
 * - While a key is removed and its value taken, the handler changes the value. The change must be
 *   in the taken value or in the map.
 * - While a value of a trie is read, the handler changes the value, and values of another prefix.
 *   The value that is read must be the key's.
 * - While a producer of a ring buffer finishes another producer's claim, the handler finishes it,
 *   and the place is used for data. The data must stay what it is.
 * - The handler leaves the operation by a jump. pb_bpf_map_abandon() must release what the
 *   operation has taken.
 */
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bpf/core/host.h"
#include "bpf/core/program.h"
#include "bpf/map/map_file.h"
#include "bpf/map/map_hash.h"
#include "bpf/map/map_ringbuf.h"
#include "bpf/map/map_stack.h"
#include "bpf/map/map_sys.h"
#include "../../unit/step_path.h"

#define CPU_SLOTS	3
#define WORDS		4
#define MOST_STEPS	100000
#ifdef __SANITIZE_ADDRESS__
#define STRIDE		7		/* most instructions are AddressSanitizer's */
#else
#define STRIDE		1
#endif

enum { KEY, OTHER };
enum { OLD = 100, NEW };

static struct pb_bpf_map map;
static struct pb_bpf_run run = { .cpu_slot = 1, .thread = 1 };
static volatile long step, step_at;
static struct step_path path;		/* of the interrupted operation */
static struct step_breakpoint breakpoint;
static volatile unsigned reused;
static void (*act)(void);
static int changed;

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
	step = path_arrived(&breakpoint, context) ? path.known : step + 1;
	path_note(&path, step, context);
	if (step != step_at)
		return;
	act();
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void make_map(uint32_t type, uint32_t value_size, bool locked)
{
	struct pb_bpf_map_spec spec = { .cpu_slots = CPU_SLOTS,
		.attr = { type, 8, value_size, 4,
			  type == BPF_MAP_TYPE_LPM_TRIE ? BPF_F_NO_PREALLOC : 0 },
		.types = { .spin_lock_off = locked ? 0 : -1, .timer_off = -1 } };

	assert_int_equal(pb_bpf_map_create(&map, &spec), 0);
}

/* Runs the operation once for each of its instructions (or for each STRIDE-th), and calls handler()
 * at this instruction. Before each run, the map has only KEY. After each run, calls check(). */
static void interrupt(void (*handler)(void), int (*operation)(uint64_t *value),
		      void (*check)(int ret, const uint64_t *value))
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO }, old;
	uint64_t key = KEY, other = OTHER, value[CPU_SLOTS * WORDS];
	int ret;

	act = handler;
	memset(&path, 0, sizeof(path));
	sigaction(SIGTRAP, &sa, &old);
	for (step_at = 1; step_at < MOST_STEPS; step_at += STRIDE) {
		pb_bpf_map_delete_elem(&map, &key);
		pb_bpf_map_delete_elem(&map, &other);
		fill(value, OLD);
		assert_int_equal(pb_bpf_map_update_elem(&map, &key, value, BPF_ANY), 0);
		changed = -1;
		step = 0;
		path_arm(&breakpoint, &path);
		set_trap_flag(!breakpoint.path);
		ret = operation(value);
		set_trap_flag(false);
		assert_false(path_disarm(&breakpoint));
		if (step < step_at)
			break;
		check(ret, value);
	}
	sigaction(SIGTRAP, &old, NULL);
}

/* ---- changes in place ---------------------------------------------------------------- */

static void reuse(void)
{
	uint64_t key = KEY, other = OTHER, value[CPU_SLOTS * WORDS];
	uint32_t was = link_of(key);

	fill(value, OTHER);
	map.ops->remove(&map, &key, NULL);
	changed = pb_bpf_map_update_elem(&map, &other, value, BPF_ANY);
	reused += was && link_of(other) == was;
}

static void other_is_right(int ret, const uint64_t *ignored)
{
	uint32_t from = map.types.spin_lock_off >= 0;
	uint64_t key = OTHER, value[CPU_SLOTS * WORDS];

	assert_int_equal(ret, 0);
	assert_int_equal(changed, 0);
	assert_int_equal(pb_bpf_map_lookup_elem(&map, &key, value, 0), 0);
	for (uint32_t i = from; i < map.cpu_slots * WORDS; i++)
		assert_int_equal(value[i], OTHER);
	for (uint32_t link = 1; link <= map.nr_elems; link++)
		assert_int_equal(elem(&map, link)->small, 0);
}

static void change(uint32_t type, bool locked, int (*operation)(uint64_t *value))
{
	reused = 0;
	make_map(type, WORDS * 8, locked);
	interrupt(reuse, operation, other_is_right);
	assert_int_not_equal(reused, 0);
	pb_bpf_map_close(&map);
}

static int change_all(uint64_t *value)
{
	uint64_t key = KEY;

	return pb_bpf_map_update_elem(&map, &key, value, BPF_ANY);
}

static int change_own_slot(uint64_t *value)
{
	uint64_t key = KEY;

	return map.ops->update(&map, &key, value, BPF_ANY, &run);
}

static int change_locked(uint64_t *value)
{
	uint64_t key = KEY;

	return map.ops->update(&map, &key, value, BPF_F_LOCK, &run);
}

static void per_cpu_values_from_outside(void **state)
{
	change(BPF_MAP_TYPE_PERCPU_HASH, false, change_all);
}

static void per_cpu_values_of_a_program(void **state)
{
	change(BPF_MAP_TYPE_PERCPU_HASH, false, change_own_slot);
	change(BPF_MAP_TYPE_LRU_PERCPU_HASH, false, change_own_slot);
}

static void values_with_a_lock(void **state)
{
	change(BPF_MAP_TYPE_HASH, true, change_locked);
}

/* ---- values that are taken ------------------------------------------------------------- */

static void update_key(void)
{
	uint64_t key = KEY, value[CPU_SLOTS * WORDS];

	fill(value, NEW);
	changed = pb_bpf_map_update_elem(&map, &key, value, BPF_ANY);
}

static int take(uint64_t *value)
{
	uint64_t key = KEY;

	return pb_bpf_map_lookup_and_delete_elem(&map, &key, value, 0);
}

static void change_is_somewhere(int ret, const uint64_t *taken)
{
	uint64_t key = KEY, value[CPU_SLOTS * WORDS];

	assert_int_equal(ret, 0);
	assert_int_equal(changed, 0);
	assert_true(taken[0] == OLD || taken[0] == NEW);
	if (taken[0] == NEW)
		return;
	assert_int_equal(pb_bpf_map_lookup_elem(&map, &key, value, 0), 0);
	assert_int_equal(value[0], NEW);
}

static void taken_values(void **state)
{
	static const struct { uint32_t type, size; } maps[] = {
		{ BPF_MAP_TYPE_HASH, 8 }, { BPF_MAP_TYPE_HASH, WORDS * 8 },
		{ BPF_MAP_TYPE_PERCPU_HASH, 8 }, { BPF_MAP_TYPE_LRU_PERCPU_HASH, WORDS * 8 },
	};

	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++) {
		make_map(maps[i].type, maps[i].size, false);
		interrupt(update_key, take, change_is_somewhere);
		pb_bpf_map_close(&map);
	}
}

/* ---- tries ----------------------------------------------------------------------------- */

/* As keys of a trie, KEY and OTHER are prefixes of 0 bits and of 1 bit. */
static void update_both(void)
{
	uint64_t key = KEY, other = OTHER, value[WORDS] = { OLD, OLD, OLD, OLD },
		other_value[WORDS] = { NEW, NEW, NEW, NEW };

	for (int i = 0; i < 8; i++) {
		changed = pb_bpf_map_update_elem(&map, &key, value, BPF_ANY);
		changed |= pb_bpf_map_update_elem(&map, &other, other_value, BPF_ANY);
	}
}

static int read_key(uint64_t *value)
{
	uint64_t key = KEY;

	return pb_bpf_map_lookup_elem(&map, &key, value, 0);
}

static void value_is_old(int ret, const uint64_t *value)
{
	assert_int_equal(ret, 0);
	assert_int_equal(changed, 0);
	for (int i = 0; i < WORDS; i++)
		assert_int_equal(value[i], OLD);
}

static void values_of_a_trie(void **state)
{
	make_map(BPF_MAP_TYPE_LPM_TRIE, WORDS * 8, false);
	interrupt(update_both, read_key, value_is_old);
	pb_bpf_map_close(&map);
}

/* ---- ring buffers ----------------------------------------------------------------------- */

#define RING	4096

/* Makes a record of zeros. */
static void output(uint32_t size)
{
	void *record = pb_bpf_ringbuf_reserve(&map, size, 0);

	assert_non_null(record);
	memset(record, 0, size);
	pb_bpf_ringbuf_submit(&map, record, 0, false);
}

static int has_zeros(void *arg, const void *data, uint64_t size)
{
	static const char zeros[RING];

	changed |= memcmp(data, zeros, size);
	return 0;
}

/* Submits the record of the claim, and makes records until the claim's place is data of the last.
 * If the interrupted operation has reserved its record already, this isn't possible. */
static void use_the_place(void)
{
	changed = 0;
	output(8);
	pb_bpf_ringbuf_submit(&map, map.elems + 8, 0, true);
	pb_bpf_ringbuf_consume(&map, has_zeros, NULL);
	if (pb_bpf_ringbuf_query(&map, BPF_RB_AVAIL_DATA))
		return;
	output(RING - 96);
	assert_int_equal(pb_bpf_ringbuf_consume(&map, has_zeros, NULL), 1);
	output(200);
	reused++;
}

static void records_of_a_ring_buffer(void **state)
{
	struct pb_bpf_map_spec spec = { .attr = { BPF_MAP_TYPE_RINGBUF, 0, 0, RING, 0 },
		.cpu_slots = 1, .types = { .spin_lock_off = -1, .timer_off = -1 } };
	struct { uint64_t pos; uint32_t len, owner; } claim = { 0, 16, 1u << 31 };
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO }, old;

	act = use_the_place;
	reused = 0;
	memset(&path, 0, sizeof(path));
	sigaction(SIGTRAP, &sa, &old);
	for (step_at = 1; step_at < MOST_STEPS; step_at += STRIDE) {
		assert_int_equal(pb_bpf_map_create(&map, &spec), 0);
		memcpy((char *)map.head + 8192 + 64, &claim, sizeof(claim));
		step = 0;
		path_arm(&breakpoint, &path);
		set_trap_flag(!breakpoint.path);
		output(8);
		set_trap_flag(false);
		assert_false(path_disarm(&breakpoint));
		if (step >= step_at) {
			assert_true(pb_bpf_ringbuf_consume(&map, has_zeros, NULL) > 0);
			assert_int_equal(pb_bpf_ringbuf_query(&map, BPF_RB_AVAIL_DATA), 0);
			assert_int_equal(changed, 0);
		}
		pb_bpf_map_close(&map);
		if (step < step_at)
			break;
	}
	assert_int_not_equal(reused, 0);
	sigaction(SIGTRAP, &old, NULL);
}

/* ---- operations that are left ----------------------------------------------------------- */

#define MOST_TAKEN	8

static struct { void *what; uint64_t word; } taken[MOST_TAKEN];
static volatile uint32_t nr_taken;
static sigjmp_buf left;

static void takes(struct pb_bpf_run *r, struct pb_bpf_map *m, void *what, uint64_t word)
{
	taken[nr_taken].what = what;
	taken[nr_taken].word = word;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	nr_taken = nr_taken + 1;
}

static void gives(struct pb_bpf_run *r, void *what)
{
	for (uint32_t i = 0; i < nr_taken; i++) {
		if (taken[i].what != what)
			continue;
		taken[i] = taken[nr_taken - 1];
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		nr_taken = nr_taken - 1;
		return;
	}
}

static const struct pb_bpf_host taking = { .takes = takes, .gives = gives };
static struct pb_bpf_run leaving = { .cpu_slot = 1, .thread = 1, .host = &taking };

static void leave(void)
{
	siglongjmp(left, 1);
}

/* Leaves the operation at each of its instructions (or at each STRIDE-th), and abandons it. After
 * that, check() looks at the map, and makes it as it was before. */
static void leave_and_abandon(int (*operation)(void), void (*check)(void))
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO }, old;

	act = leave;
	memset(&path, 0, sizeof(path));
	sigaction(SIGTRAP, &sa, &old);
	for (step_at = 1; step_at < MOST_STEPS; step_at += STRIDE) {
		nr_taken = 0;
		step = 0;
		if (!sigsetjmp(left, 1)) {
			path_arm(&breakpoint, &path);
			set_trap_flag(!breakpoint.path);
			operation();
			set_trap_flag(false);
			assert_false(path_disarm(&breakpoint));
		}
		if (step < step_at)
			break;
		while (nr_taken) {
			nr_taken = nr_taken - 1;
			pb_bpf_map_abandon(&map, taken[nr_taken].what, taken[nr_taken].word);
		}
		check();
	}
	assert_true(step_at > 2 * STRIDE);
	sigaction(SIGTRAP, &old, NULL);
}

static int store_stack(void)
{
	uint64_t ips[3] = { 1, 2, 3 };

	return pb_bpf_stack_put(&map, ips, 3, 0, &leaving) < 0;
}

/* The map has one bucket. */
static void bucket_can_be_filled(void)
{
	uint64_t ips[2] = { 7, 8 };
	uint32_t id = 0;

	assert_int_equal(pb_bpf_stack_put(&map, ips, 2, BPF_F_REUSE_STACKID, NULL), 0);
	assert_int_equal(pb_bpf_map_delete_elem(&map, &id), 0);
}

static void buckets_are_given_back(void **state)
{
	struct pb_bpf_map_spec spec = { .attr = { BPF_MAP_TYPE_STACK_TRACE, 4, 64, 1, 0 },
		.cpu_slots = 1, .types = { .spin_lock_off = -1, .timer_off = -1 } };

	assert_int_equal(pb_bpf_map_create(&map, &spec), 0);
	leave_and_abandon(store_stack, bucket_can_be_filled);
	pb_bpf_map_close(&map);
}

static int update(void)
{
	uint64_t key = KEY, value[CPU_SLOTS * WORDS];

	fill(value, NEW);
	return map.ops->update(&map, &key, value,
			       map.types.spin_lock_off < 0 ? BPF_ANY : BPF_F_LOCK, &leaving);
}

static void nothing_is_announced(void)
{
	uint64_t key = KEY, value[CPU_SLOTS * WORDS];

	for (uint32_t i = 0; i < CHANGING; i++)
		assert_int_equal(hash_top(&map)->changing[i], 0);
	assert_int_equal(elem(&map, link_of(KEY))->small, 0);
	/* no lock of a value is held either */
	fill(value, OLD);
	if (map.types.spin_lock_off >= 0)
		assert_int_equal(pb_bpf_map_update_elem(&map, &key, value, BPF_F_LOCK), 0);
}

static void announcements_are_given_back(void **state)
{
	uint64_t key = KEY, value[CPU_SLOTS * WORDS];

	fill(value, OLD);
	for (int locked = 0; locked < 2; locked++) {
		make_map(locked ? BPF_MAP_TYPE_HASH : BPF_MAP_TYPE_PERCPU_HASH, WORDS * 8, locked);
		assert_int_equal(pb_bpf_map_update_elem(&map, &key, value, BPF_ANY), 0);
		leave_and_abandon(update, nothing_is_announced);
		pb_bpf_map_close(&map);
	}
}

/* ---- without interruptions ------------------------------------------------------------- */

/* A program holds the lock of a value. The lock stays held even if the element is deleted and
 * reused for another key. */
static void a_lock_stays_held(void **state)
{
	uint64_t key = KEY, other = OTHER, value[CPU_SLOTS * WORDS], *held;

	make_map(BPF_MAP_TYPE_HASH, WORDS * 8, true);
	fill(value, OLD);
	assert_int_equal(pb_bpf_map_update_elem(&map, &key, value, BPF_ANY), 0);
	held = map.ops->lookup(&map, &key, &run);
	assert_int_equal(pb_bpf_map_lock(&map, held, 1), 0);
	assert_int_equal(pb_bpf_map_delete_elem(&map, &key), 0);
	assert_int_equal(pb_bpf_map_update_elem(&map, &other, value, BPF_ANY), 0);
	assert_ptr_equal(map.ops->lookup(&map, &other, &run), held);
	assert_int_equal(pb_bpf_map_lock(&map, held, 1), -EBUSY);
	pb_bpf_map_unlock(&map, held);
	assert_int_equal(pb_bpf_map_lock(&map, held, 2), 0);
	pb_bpf_map_close(&map);
}

/* A program still uses its pointer to a value of a trie after the next updates. */
static void a_pointer_into_a_trie(void **state)
{
	uint64_t key = KEY, other = OTHER, value[WORDS] = { OLD }, *old;

	make_map(BPF_MAP_TYPE_LPM_TRIE, WORDS * 8, false);
	assert_int_equal(pb_bpf_map_update_elem(&map, &key, value, BPF_ANY), 0);
	for (int i = 0; i < 100; i++) {
		old = map.ops->lookup(&map, &key, &run);
		value[0] = NEW;
		assert_int_equal(pb_bpf_map_update_elem(&map, &key, value, BPF_ANY), 0);
		value[0] = OTHER;
		assert_int_equal(pb_bpf_map_update_elem(&map, &other, value, BPF_ANY), 0);
		assert_int_equal(old[0], i ? NEW : OLD);
	}
	pb_bpf_map_close(&map);
}

/* A thread announces a change of a value in a word (map_hash.h). Even if no word is free, an update
 * must change the value. */
static void all_words_are_in_use(void **state)
{
	uint64_t key = KEY, other = OTHER, value[CPU_SLOTS * WORDS], out[CPU_SLOTS * WORDS];
	uint64_t *words[CHANGING + 1];
	uint32_t link;

	make_map(BPF_MAP_TYPE_PERCPU_HASH, WORDS * 8, false);
	fill(value, 1);
	assert_int_equal(pb_bpf_map_update_elem(&map, &key, value, BPF_ANY), 0);
	link = link_of(key);
	for (int i = 0; i <= CHANGING; i++) {
		words[i] = pb_bpf_hash_begin_change(&map, link, NULL);
		assert_non_null(words[i]);
	}
	assert_null(pb_bpf_hash_begin_change(&map, link, NULL));
	fill(value, 2);
	assert_int_equal(pb_bpf_map_update_elem(&map, &key, value, BPF_ANY), 0);
	assert_int_equal(pb_bpf_map_lookup_elem(&map, &key, out, 0), 0);
	assert_memory_equal(out, value, sizeof(out));
	/* while a change of the element is announced, the element isn't reused for another key */
	assert_int_equal(pb_bpf_map_delete_elem(&map, &key), 0);
	assert_int_equal(pb_bpf_map_update_elem(&map, &other, value, BPF_ANY), 0);
	assert_int_not_equal(link_of(other), link);
	for (int i = 0; i <= CHANGING; i++)
		pb_bpf_hash_end_change(&map, link, words[i], NULL);
	pb_bpf_map_close(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(per_cpu_values_from_outside),
		cmocka_unit_test(per_cpu_values_of_a_program),
		cmocka_unit_test(values_with_a_lock),
		cmocka_unit_test(taken_values),
		cmocka_unit_test(values_of_a_trie),
		cmocka_unit_test(records_of_a_ring_buffer),
		cmocka_unit_test(buckets_are_given_back),
		cmocka_unit_test(announcements_are_given_back),
		cmocka_unit_test(a_lock_stays_held),
		cmocka_unit_test(a_pointer_into_a_trie),
		cmocka_unit_test(all_words_are_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
