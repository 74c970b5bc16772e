/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Locks and half-done changes of processes that died. A process that can't find out which processes
 * live, like an agent, must be able to use the map again after another process has called
 * pb_bpf_map_repair(). A process that gets the dead process's owner number must be able to use the
 * map, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
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
	int64_t id = pb_bpf_stack_put(m, value, 2, 0);

	return id < 0 ? (int)id : 0;
}

static int ignore(void *arg, const void *data, uint64_t size)
{
	return 0;
}

static int output(struct pb_bpf_map *m)
{
	assert_int_equal(pb_bpf_ringbuf_output(m, value, 8, 0), 0);
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

static void another_process_repairs(void **state)
{
	for (size_t i = 0; i < pb_array_size(cases); i++) {
		struct pb_bpf_map m, agent;
		uint32_t dead = make(&m, &cases[i]);

		attach(&m, &agent);
		agent.alive = NULL;
		agent.claim = NULL;
		agent.unclaim = NULL;
		assert_int_equal(cases[i].operate(&agent), -EBUSY);
		pb_bpf_map_repair(&m);
		assert_int_equal(m.head->owners[dead / 32] >> dead % 32 & 1, 0);
		assert_int_equal(m.head->owners[agent.owner / 32] >> agent.owner % 32 & 1, 1);
		assert_int_equal(cases[i].operate(&agent), 0);
		pb_bpf_map_close(&agent);
		pb_bpf_map_close(&m);
	}
}

static void number_is_used_again(void **state)
{
	for (size_t i = 0; i < pb_array_size(cases); i++) {
		struct pb_bpf_map m, later;
		uint32_t dead = make(&m, &cases[i]);

		m.head->next_owner = dead - 1;
		attach(&m, &later);
		assert_int_equal(later.owner, dead);
		assert_int_equal(cases[i].operate(&later), 0);
		assert_int_equal(cases[i].operate(&m), 0);
		pb_bpf_map_close(&later);
		pb_bpf_map_close(&m);
	}
}

/* What a living process holds stays. */
static void living_processes_keep_locks(void **state)
{
	for (size_t i = 0; i < pb_array_size(cases); i++) {
		struct pb_bpf_map m, other;

		if (cases[i].leave == leave_claim)
			continue;	/* each process may finish a claim */
		make(&m, &cases[i]);
		pb_bpf_map_repair(&m);
		attach(&m, &other);
		cases[i].leave(&other);
		pb_bpf_map_repair(&m);
		assert_int_equal(cases[i].operate(&m), -EBUSY);
		pb_bpf_map_close(&other);
		pb_bpf_map_close(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_process_repairs),
		cmocka_unit_test(number_is_used_again),
		cmocka_unit_test(living_processes_keep_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
