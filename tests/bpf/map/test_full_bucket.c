/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Walks over a hash map whose elements are all in one bucket, and that are too many for one step of
 * a walk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "bpf/map/map_file.h"
#include "bpf/map/map_hash.h"
#include "bpf/map/map_sys.h"

#define FULL	40	/* a batch collects at most 32 elements of a bucket at once, so a bucket
			 * with 40 elements needs a second step */

/* Makes a hash map with FULL elements, which are all in the first bucket. */
static void fill_bucket(struct pb_bpf_map *m, uint32_t value_size)
{
	struct pb_bpf_map_spec spec = {
		.attr = { BPF_MAP_TYPE_HASH, 8, value_size, 64, 0 }, .cpu_slots = 4,
		.types = { .spin_lock_off = -1, .timer_off = -1 },
	};
	uint64_t key = 0;

	assert_int_equal(pb_bpf_map_create(m, &spec), 0);
	for (uint64_t i = 0; i < FULL; key++) {
		uint64_t value[2] = { i };

		if (pb_bpf_hash_of(m, &key) & m->mask)
			continue;
		assert_int_equal(pb_bpf_map_update_elem(m, &key, value, 0), 0);
		i++;
	}
}

static int64_t count_one(void *arg, struct pb_bpf_map *m, const void *key, void *value)
{
	++*(uint32_t *)arg;
	return 0;
}

/* Calls lookup_and_delete_batch with room for `room` elements until the map is empty. Returns the
 * number of elements that all calls returned. */
static uint32_t take_all(struct pb_bpf_map *m, uint32_t room)
{
	uint64_t keys[FULL], values[FULL], seen = 0, cursor = 0;
	uint32_t nr = 0, count = room;
	struct pb_bpf_map_batch b = { NULL, &cursor, keys, values, &count, 0, 0 };

	for (int err = 0; !err; b.in = &cursor) {
		count = room;
		err = pb_bpf_map_lookup_and_delete_batch(m, &b);
		assert_true(!err || err == -ENOENT);
		for (uint32_t i = 0; i < count; i++) {
			assert_int_equal(seen >> values[i] & 1, 0);
			seen |= 1ull << values[i];
		}
		nr += count;
	}
	return nr;
}

/* Reads a map in batches. In the first round, a batch
 * has no room for the whole bucket. */
static void full_bucket(void **state)
{
	for (uint32_t room = FULL - 5; room <= FULL; room += 5) {
		uint64_t keys[FULL], values[FULL], cursor = 0;
		uint32_t count = room;
		struct pb_bpf_map m;
		struct pb_bpf_map_batch b = { NULL, &cursor, keys, values, &count, 0, 0 };

		fill_bucket(&m, 8);
		assert_int_equal(pb_bpf_map_lookup_batch(&m, &b), room < FULL ? -ENOSPC : -ENOENT);
		assert_int_equal(count, room < FULL ? 0 : FULL);
		assert_int_equal(take_all(&m, room), FULL);
		count = 0;
		m.ops->each(&m, count_one, &count, NULL);
		assert_int_equal(count, 0);
		pb_bpf_map_close(&m);
	}
}

/* Removes the element that it is called for. */
static int64_t remove_one(void *arg, struct pb_bpf_map *m, const void *key, void *value)
{
	++*(uint32_t *)arg;
	assert_int_equal(m->ops->remove(m, key, NULL), 0);
	return 0;
}

/* Removes all elements of a bucket during a walk. The walk collects them in several parts. */
static void emptied_in_a_walk(void **state)
{
	uint32_t count = 0;
	struct pb_bpf_map m;

	fill_bucket(&m, 8);
	m.ops->each(&m, remove_one, &count, NULL);
	assert_int_equal(count, FULL);
	pb_bpf_map_close(&m);
}

/* Notes the element's number. Removes the last element of the walk's first step, whose number is 8,
 * because a new element becomes the first of its list. Then updates the last element of the list,
 * so that the removed element is reused after all others. */
static int64_t reuse_last_of_step(void *arg, struct pb_bpf_map *m, const void *key, void *value)
{
	uint64_t *seen = arg, number = *(uint64_t *)value, zero[2] = { 0 };
	void *reused = NULL;

	*seen |= 1ull << number;
	if (number != FULL - 32)
		return 0;
	assert_int_equal(m->ops->remove(m, key, NULL), 0);
	for (uint64_t k = 0; !reused; k++)
		if (!(pb_bpf_hash_of(m, &k) & m->mask)) {
			assert_int_equal(pb_bpf_map_update_elem(m, &k, zero, 0), 0);
			reused = m->ops->lookup(m, &k, NULL);
		}
	assert_ptr_equal(reused, value);
	return 0;
}

/* The last element of a walk's step is reused for another key of the bucket. The next step must not
 * begin at the other key. */
static void reused_in_a_walk(void **state)
{
	struct pb_bpf_map m;
	uint64_t seen = 0;

	fill_bucket(&m, 16);
	m.ops->each(&m, reuse_last_of_step, &seen, NULL);
	assert_int_equal(seen, (1ull << FULL) - 1);
	pb_bpf_map_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_bucket), cmocka_unit_test(emptied_in_a_walk),
		cmocka_unit_test(reused_in_a_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
