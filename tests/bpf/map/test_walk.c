/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Walks over a bucket while an element of the bucket is deleted. When an element is unlinked, the
 * element before it gets another tag. A walk must not take it for deleted. If the deleted element
 * is reused for another key of the bucket, a walk must not take it for the element that it was.
 *
 * The bucket's list is A, B, C, D. C is deleted: by the callback for A, by the read of A, or, in
 * get_next_key(), at each instruction. An update of A then reuses C's element, if values are too
 * large to be changed in place.
 */
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "bpf/map/map_file.h"
#include "bpf/map/map_hash.h"
#include "bpf/map/map_sys.h"
#include "../../unit/step_path.h"

#define BUCKET	5		/* the bucket that has all elements */
#define LARGE	16		/* size of values that are not changed in place */

enum { A, B, C, D, NR };

static struct pb_bpf_map map;
static uint64_t keys[NR];

static void make_map(uint32_t type, uint32_t value_size, bool lock)
{
	struct pb_bpf_map_spec spec = {
		.attr = { type, 8, value_size, 8, 0 }, .cpu_slots = 1,
		.types = { .spin_lock_off = lock ? 0 : -1, .timer_off = -1 },
	};
	uint64_t key = 1;

	assert_int_equal(pb_bpf_map_create(&map, &spec), 0);
	for (int i = 0; i < NR; key++)
		if ((pb_bpf_hash_of(&map, &key) & map.mask) == BUCKET)
			keys[i++] = key;
}

static int update(int i)
{
	uint64_t value[LARGE / 8] = { keys[i] };

	return pb_bpf_map_update_elem(&map, &keys[i], value, 0);
}

/* Fills the bucket. A new element becomes the first of its list. */
static void fill_bucket(void)
{
	for (int i = 0; i < NR; i++)
		pb_bpf_map_delete_elem(&map, &keys[i]);
	for (int i = NR - 1; i >= 0; i--)
		assert_int_equal(update(i), 0);
}

static void delete_c(void)
{
	pb_bpf_map_delete_elem(&map, &keys[C]);
}

static void reuse_c(void)
{
	uint32_t link = pb_bpf_hash_find(&map, pb_bpf_hash_of(&map, &keys[C]), &keys[C]).link;

	delete_c();
	assert_int_equal(update(A), 0);
	assert_int_equal(pb_bpf_hash_find(&map, pb_bpf_hash_of(&map, &keys[A]), &keys[A]).link,
			 link);
}

static void (*change)(void);

/* ---- bpf_for_each_map_elem ----------------------------------------------------------- */

static uint64_t visited[NR];
static uint32_t nr_visited;

static int64_t visit(void *arg, struct pb_bpf_map *m, const void *key, void *value)
{
	assert_true(nr_visited < NR);
	memcpy(&visited[nr_visited], key, 8);
	if (!nr_visited++)
		change();
	return 0;
}

static void check_each(uint32_t type, uint32_t value_size, void (*fn)(void))
{
	make_map(type, value_size, false);
	fill_bucket();
	nr_visited = 0;
	change = fn;
	assert_int_equal(map.ops->each(&map, visit, NULL, NULL), NR - 1);
	assert_int_equal(visited[0], keys[A]);
	assert_int_equal(visited[1], keys[B]);
	assert_int_equal(visited[2], keys[D]);
	pb_bpf_map_close(&map);
}

static void each(void **state)
{
	check_each(BPF_MAP_TYPE_LRU_HASH, 8, delete_c);
	check_each(BPF_MAP_TYPE_HASH, LARGE, reuse_c);
}

/* ---- batches ------------------------------------------------------------------------- */

static int (*read_value)(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags);

static int read_and_change(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags)
{
	int err = read_value(m, key, value, flags);

	if (!memcmp(key, &keys[A], 8))
		change();
	return err;
}

static void check_batch(uint32_t type, uint32_t value_size, void (*fn)(void))
{
	uint64_t got[NR], values[NR * LARGE / 8];
	uint32_t count = NR, pos;
	struct pb_bpf_map_batch b = { NULL, &pos, got, values, &count, 0, 0 };
	struct pb_bpf_map_ops ops;

	make_map(type, value_size, false);
	fill_bucket();
	change = fn;
	ops = *map.ops;
	read_value = ops.read;
	ops.read = read_and_change;
	map.ops = &ops;
	assert_int_equal(pb_bpf_map_lookup_batch(&map, &b), -ENOENT);
	assert_int_equal(count, NR - 1);
	assert_int_equal(got[0], keys[A]);
	assert_int_equal(got[1], keys[B]);
	assert_int_equal(got[2], keys[D]);
	pb_bpf_map_close(&map);
}

static void batch(void **state)
{
	check_batch(BPF_MAP_TYPE_LRU_HASH, 8, delete_c);
	check_batch(BPF_MAP_TYPE_HASH, LARGE, reuse_c);
}

/* A batch that has too little room for a bucket gives the position at which a larger one can go
 * on. */
static void too_little_room(void **state)
{
	uint64_t got[NR], values[NR];
	uint32_t count = NR - 1, pos = 77;
	struct pb_bpf_map_batch b = { NULL, &pos, got, values, &count, 0, 0 };

	make_map(BPF_MAP_TYPE_LRU_HASH, 8, false);
	fill_bucket();
	assert_int_equal(pb_bpf_map_lookup_batch(&map, &b), -ENOSPC);
	assert_int_equal(count, 0);
	assert_int_equal(pos, BUCKET);
	b.in = &pos;
	count = NR;
	assert_int_equal(pb_bpf_map_lookup_batch(&map, &b), -ENOENT);
	assert_int_equal(count, NR);
	pb_bpf_map_close(&map);
}

/* An element whose lock is taken can't be read under the lock. This is an error of the batch. */
static void locked(void **state)
{
	uint64_t got[NR], values[NR];
	uint32_t count = NR, pos;
	struct pb_bpf_map_batch b = { NULL, &pos, got, values, &count, BPF_F_LOCK, 0 };

	make_map(BPF_MAP_TYPE_HASH, 8, true);
	fill_bucket();
	assert_int_equal(pb_bpf_map_lookup_batch(&map, &b), -ENOENT);
	assert_int_equal(count, NR);
	assert_int_equal(pb_bpf_map_lock(&map, map.ops->lookup(&map, &keys[C], NULL),
					 (uint32_t)gettid()), 0);
	assert_int_equal(pb_bpf_map_lookup_batch(&map, &b), -EBUSY);
	assert_int_equal(count, 0);
	count = NR;
	assert_int_equal(pb_bpf_map_lookup_and_delete_batch(&map, &b), -EBUSY);
	assert_int_equal(count, 2);
	assert_int_equal(got[0], keys[A]);
	assert_int_equal(got[1], keys[B]);
	pb_bpf_map_close(&map);
}

/* ---- get_next_key -------------------------------------------------------------------- */

static volatile long step, step_at;

static void on_step(int sig, siginfo_t *info, void *context)
{
	if (++step != step_at)
		return;
	delete_c();
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void next_key(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO }, old;
	uint64_t next;
	int err;

	make_map(BPF_MAP_TYPE_LRU_HASH, 8, false);
	sigaction(SIGTRAP, &sa, &old);
	for (step_at = 1; ; step_at++) {
		fill_bucket();
		step = 0;
		set_trap_flag(true);
		err = pb_bpf_map_get_next_key(&map, &keys[A], &next);
		set_trap_flag(false);
		assert_int_equal(err, 0);
		if (next != keys[B])
			fail_msg("step %ld: %lu, not %lu", step_at, next, keys[B]);
		if (step < step_at)
			break;
	}
	sigaction(SIGTRAP, &old, NULL);
	assert_true(step_at > 50);
	pb_bpf_map_close(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each), cmocka_unit_test(batch), cmocka_unit_test(too_little_room),
		cmocka_unit_test(locked), cmocka_unit_test(next_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
