/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Locks and half-done changes of processes that died. If a process that can't find out which
 * processes live, like an agent, waits for a dead process's lock, another process must release the
 * lock by pb_bpf_map_release_dead(). If a process gets the dead process's owner number, it must be
 * able to use the map, if the map has one lock for all writers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "bpf/core/program.h"
#include "bpf/map/map_file.h"
#include "bpf/map/map_hash.h"
#include "bpf/map/map_ringbuf.h"
#include "bpf/map/map_stack.h"
#include "bpf/map/map_sys.h"
#include "../common/reopen.h"

static uint32_t key = 1;
static uint64_t prefix = 32 | 1ull << 40, value[2];
static struct pb_bpf_run run = { .thread = 77 };

/* ---- what a dead process leaves: a lock's word, a bucket, a claim ------------------------ */

static uint32_t word_of(const struct pb_bpf_map *m)
{
	return m->owner << 22 | 1;
}

static void leave_guard(struct pb_bpf_map *m)
{
	*(uint32_t *)(m->head + 1) = word_of(m);
}

static void leave_hash_guard(struct pb_bpf_map *m)
{
	hash_top(m)->guard = word_of(m);
}

static void leave_value(struct pb_bpf_map *m)
{
	assert_int_equal(m->ops->update(m, &key, value, BPF_ANY, &run), 0);
	assert_int_equal(pb_bpf_map_lock(m, m->ops->lookup(m, &key, &run), 1), 0);
}

/* The state of the map's only bucket is BUSY. */
static void leave_bucket(struct pb_bpf_map *m)
{
	*(uint64_t *)m->elems = m->owner << 2 | 2;
}

static void leave_claim(struct pb_bpf_map *m)
{
	struct { uint64_t pos; uint32_t len, owner; } claim = { 0, 16, m->owner | 1u << 31 };

	memcpy((char *)m->head + 8192 + 64, &claim, sizeof(claim));
}

/* ---- operations: -EBUSY if they find what the dead process has left ---------------------- */

static int push(struct pb_bpf_map *m)
{
	return m->ops->push(m, value, BPF_ANY, &run);
}

static int insert_prefix(struct pb_bpf_map *m)
{
	return m->ops->update(m, &prefix, value, BPF_ANY, &run);
}

static int remove_none(struct pb_bpf_map *m)
{
	int err = m->ops->remove(m, &key, &run);

	return err == -ENOENT ? 0 : err;
}

static int lock(struct pb_bpf_map *m)
{
	void *at = m->ops->lookup(m, &key, &run);
	int err = pb_bpf_map_lock(m, at, 5);

	if (!err)
		pb_bpf_map_unlock(m, at);
	return err;
}

static int store_stack(struct pb_bpf_map *m)
{
	int64_t id = pb_bpf_stack_put(m, value, 2, 0, NULL);

	return id < 0 ? (int)id : 0;
}

static int ignore(void *arg, const void *data, uint64_t size)
{
	return 0;
}

static int output(struct pb_bpf_map *m)
{
	void *to = pb_bpf_ringbuf_reserve(m, 8, 0);

	assert_non_null(to);
	pb_bpf_ringbuf_submit(m, to, 0, false);
	return pb_bpf_ringbuf_consume(m, ignore, NULL) > 0 ? 0 : -EBUSY;
}

static const struct left {
	struct pb_bpf_map_attr attr;
	int32_t lock_off;
	void (*leave)(struct pb_bpf_map *m);
	int (*operate)(struct pb_bpf_map *m);
} cases[] = {
	{ { BPF_MAP_TYPE_QUEUE, 0, 16, 4, 0 }, -1, leave_guard, push },
	{ { BPF_MAP_TYPE_STACK, 0, 16, 4, 0 }, -1, leave_guard, push },
	{ { BPF_MAP_TYPE_LPM_TRIE, 8, 16, 4, BPF_F_NO_PREALLOC }, -1, leave_guard, insert_prefix },
	{ { BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, 4, 0 }, -1, leave_hash_guard, remove_none },
	{ { BPF_MAP_TYPE_ARRAY, 4, 16, 4, 0 }, 8, leave_value, lock },
	{ { BPF_MAP_TYPE_HASH, 4, 16, 4, 0 }, 8, leave_value, lock },
	{ { BPF_MAP_TYPE_HASH, 4, 4, 4, 0 }, 0, leave_value, lock },
	{ { BPF_MAP_TYPE_STACK_TRACE, 4, 16, 1, 0 }, -1, leave_bucket, store_stack },
	{ { BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0 }, -1, leave_claim, output },
};

static void attach(const struct pb_bpf_map *m, struct pb_bpf_map *other)
{
	assert_int_equal(pb_bpf_map_attach(other, reopen(m->fd),
					   PB_BPF_MAP_READ | PB_BPF_MAP_WRITE), 0);
}

/* Makes a map that a process has left in the middle of an operation. Returns the owner number of
 * that process. */
static uint32_t make(struct pb_bpf_map *m, const struct left *c)
{
	struct pb_bpf_map_spec spec = { .attr = c->attr, .cpu_slots = 1,
		.inner = { BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0 },
		.types = { .spin_lock_off = c->lock_off, .timer_off = -1 } };
	struct pb_bpf_map dead;

	assert_int_equal(pb_bpf_map_create(m, &spec), 0);
	attach(m, &dead);
	c->leave(&dead);
	munmap(dead.head, dead.mapped);
	close(dead.fd);
	return dead.owner;
}

static void attach_agent(const struct pb_bpf_map *m, struct pb_bpf_map *agent)
{
	attach(m, agent);
	agent->alive = NULL;
	agent->claim = NULL;
	agent->unclaim = NULL;
}

static bool is_lock(const struct left *c)
{
	return c->leave != leave_claim;	/* each process may finish a claim */
}

static void another_process_releases(void **state)
{
	for (size_t i = 0; i < pb_array_size(cases); i++) {
		struct pb_bpf_map m, agent;

		if (!is_lock(&cases[i]))
			continue;
		make(&m, &cases[i]);
		attach_agent(&m, &agent);
		pb_bpf_map_release_dead(&m);
		assert_int_equal(cases[i].operate(&agent), -EBUSY);
		pb_bpf_map_release_dead(&m);
		assert_int_equal(cases[i].operate(&agent), 0);
		pb_bpf_map_release_dead(&m);
		assert_int_equal(m.head->stuck, 0);
		pb_bpf_map_close(&agent);
		pb_bpf_map_close(&m);
	}
}

static struct pb_bpf_map observed;

static void *release(void *arg)
{
	for (int i = 0; i < 10000 && !__atomic_load_n((bool *)arg, __ATOMIC_ACQUIRE); i++) {
		usleep(1000);
		pb_bpf_map_release_dead(&observed);
	}
	return NULL;
}

/* If another process looks meanwhile, the first operation succeeds. */
static void released_while_it_waits(void **state)
{
	struct pb_bpf_map agent;
	bool done = false;
	pthread_t thread;

	make(&observed, &cases[0]);
	attach_agent(&observed, &agent);
	assert_int_equal(pthread_create(&thread, NULL, release, &done), 0);
	for (int i = 0; cases[0].operate(&agent); i++)
		assert_true(i < 100);	/* on a busy machine, the other thread may be late */
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	pb_bpf_map_close(&agent);
	pb_bpf_map_close(&observed);
}

static void number_is_used_again(void **state)
{
	for (size_t i = 0; i < pb_array_size(cases); i++) {
		struct pb_bpf_map m, later;
		uint32_t dead;

		if (cases[i].leave == leave_value || cases[i].leave == leave_bucket)
			continue;
		dead = make(&m, &cases[i]);
		m.head->next_owner = dead - 1;
		attach(&m, &later);
		assert_int_equal(later.owner, dead);
		assert_int_equal(cases[i].operate(&later), 0);
		assert_int_equal(cases[i].operate(&m), 0);
		pb_bpf_map_close(&later);
		pb_bpf_map_close(&m);
	}
}

/* What a living process holds stays. So does what no process waits for. */
static void living_processes_keep_locks(void **state)
{
	for (size_t i = 0; i < pb_array_size(cases); i++) {
		struct pb_bpf_map m, other, agent;

		if (!is_lock(&cases[i]))
			continue;
		make(&m, &cases[i]);
		attach_agent(&m, &agent);
		assert_int_equal(cases[i].operate(&agent), -EBUSY);
		pb_bpf_map_release_dead(&m);
		attach(&m, &other);
		cases[i].leave(&other);
		assert_int_equal(cases[i].operate(&agent), -EBUSY);
		assert_true(m.head->stuck);
		pb_bpf_map_release_dead(&m);
		assert_int_equal(cases[i].operate(&agent), -EBUSY);
		pb_bpf_map_close(&other);
		pb_bpf_map_close(&agent);
		pb_bpf_map_close(&m);
	}
}

static uint64_t passed_word;

/* Meanwhile, another process has discarded the record, the consumer has passed it, and a larger
 * record has the same bytes in its data. */
static bool dead_and_passed(const struct pb_bpf_map *m, uint32_t owner)
{
	uint64_t *consumer = (uint64_t *)((char *)m->head + 4096), *data = (uint64_t *)m->elems;

	passed_word = data[0];
	consumer[0] = consumer[512] = 4096 - 16;	/* 512: the producers' position */
	return false;
}

static void a_repair_leaves_data_alone(void **state)
{
	struct pb_bpf_map_spec spec = { .attr = { BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0 },
		.cpu_slots = 1, .types = { .spin_lock_off = -1, .timer_off = -1 } };
	struct pb_bpf_map m;

	assert_int_equal(pb_bpf_map_create(&m, &spec), 0);
	assert_non_null(pb_bpf_ringbuf_reserve(&m, 8, 0));
	m.alive = dead_and_passed;
	m.ops->repair(&m, 0);
	assert_int_not_equal(passed_word, 0);
	assert_int_equal(*(uint64_t *)m.elems, passed_word);
	pb_bpf_map_close(&m);
}

#define BUSY		(1ull << 31)
#define DISCARDED	(1ull << 30)

static uint64_t *word_at(const struct pb_bpf_map *m, uint64_t pos)
{
	return (uint64_t *)(m->elems + pos);
}

static void move_consumer(const struct pb_bpf_map *m, uint64_t pos)
{
	*(uint64_t *)((char *)m->head + 4096) = pos;
}

/* Makes a ring buffer with records of these numbers of bytes. The processes 101, 102 ... have
 * reserved them. */
static void make_ring(struct pb_bpf_map *m, const uint32_t *sizes, uint32_t nr)
{
	struct pb_bpf_map_spec spec = { .attr = { BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0 },
		.cpu_slots = 1, .types = { .spin_lock_off = -1, .timer_off = -1 } };
	uint32_t own;

	assert_int_equal(pb_bpf_map_create(m, &spec), 0);
	own = m->owner;
	for (uint32_t i = 0; i < nr; i++) {
		m->owner = 101 + i;
		assert_non_null(pb_bpf_ringbuf_reserve(m, sizes[i], 0));
	}
	m->owner = own;
}

/* Meanwhile, another process has discarded the first record, and the consumer has passed it. */
static bool dead_and_first_passed(const struct pb_bpf_map *m, uint32_t owner)
{
	if (owner == 101) {
		*word_at(m, 0) = DISCARDED | 8;
		move_consumer(m, 16);
	}
	return false;
}

/* If the consumer passes a record during a repair, the repair goes on with the next one. */
static void a_repair_goes_on_after_the_consumer(void **state)
{
	static const uint32_t sizes[2] = { 8, 8 };
	struct pb_bpf_map m;

	make_ring(&m, sizes, 2);
	m.alive = dead_and_first_passed;
	m.ops->repair(&m, 0);
	assert_int_equal(*word_at(&m, 16) & (BUSY | DISCARDED), DISCARDED);
	pb_bpf_map_close(&m);
}

#define IN_DATA (16 + 1008)

/* While a repair looks at the first record, the consumer passes the second one, and the second
 * one's place becomes data. */
static bool alive_and_second_passed(const struct pb_bpf_map *m, uint32_t owner)
{
	if (owner == 101) {
		*word_at(m, 16) = 1000;
		move_consumer(m, 32);
	}
	return owner < 200;
}

/* A repair doesn't go on by a length that is data: it would take data for a header. */
static void a_repair_goes_by_headers(void **state)
{
	static const uint32_t sizes[3] = { 8, 8, 2000 };
	uint64_t like_a_header = 200ull << 32 | BUSY | 8;
	struct pb_bpf_map m;

	make_ring(&m, sizes, 3);
	*word_at(&m, IN_DATA) = like_a_header;
	m.alive = alive_and_second_passed;
	m.ops->repair(&m, 0);
	assert_int_equal(*word_at(&m, IN_DATA), like_a_header);
	assert_int_equal(*word_at(&m, 32) & (BUSY | DISCARDED), BUSY);
	pb_bpf_map_close(&m);
}

/* Once, another thread has changed the header's generation meanwhile. */
static bool dead_and_changed(const struct pb_bpf_map *m, uint32_t owner)
{
	static bool changed;

	if (!changed)
		*word_at(m, 0) += 1ull << 42;
	changed = true;
	return false;
}

static void a_repair_looks_again(void **state)
{
	static const uint32_t size = 8;
	struct pb_bpf_map m;

	make_ring(&m, &size, 1);
	m.alive = dead_and_changed;
	m.ops->repair(&m, 0);
	assert_int_equal(*word_at(&m, 0) & (BUSY | DISCARDED), DISCARDED);
	pb_bpf_map_close(&m);
}

/* A process may store any offset. */
static void wrong_offsets(void **state)
{
	for (size_t i = 0; i < pb_array_size(cases); i++) {
		struct pb_bpf_map m;

		make(&m, &cases[i]);
		for (uint64_t at = 1; at; at = at < 1 << 16 ? at + 1 : at << 1) {
			m.head->stuck = at;
			pb_bpf_map_release_dead(&m);
			assert_int_equal(m.head->stuck, 0);
		}
		pb_bpf_map_close(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_process_releases),
		cmocka_unit_test(released_while_it_waits),
		cmocka_unit_test(number_is_used_again),
		cmocka_unit_test(living_processes_keep_locks),
		cmocka_unit_test(a_repair_leaves_data_alone),
		cmocka_unit_test(a_repair_goes_on_after_the_consumer),
		cmocka_unit_test(a_repair_goes_by_headers),
		cmocka_unit_test(a_repair_looks_again),
		cmocka_unit_test(wrong_offsets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
