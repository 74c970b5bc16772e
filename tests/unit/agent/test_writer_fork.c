/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests the writer of the ring in a process that forks. A record is written under single-stepping.
 * At the k-th step, for each k, a signal handler forks. First the parent fills the chunk. Next the
 * child goes on with the interrupted record. The child must not change any byte of the parent's
 * chunks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "ring/change.h"
#include "test_writer_fork.h"
#include "writer_step.h"

/* Returns the number of records in the chunk. The interrupted record doesn't count: the child or
 * the parent may have written it. Adds the number of words that aren't records of this test to
 * *others. */
static uint32_t records_in(const struct pb_chunk *c, uint32_t interrupted, uint32_t *others)
{
	const uint64_t *data = (const uint64_t *)(c + 1);
	uint32_t nr = 0, end = (PB_CHUNK_SIZE - PB_CHUNK_HEADER) / 8, len;

	for (uint32_t i = 2; i < end; i += len) {
		unsigned type = data[i] >> PB_EXT_TYPE_SHIFT & 0x3f;

		len = 1;
		if (data[i] & PB_TAG_MASK) {
			nr += (data[i] >> PB_SITE_SHIFT & PB_SITE_MASK) != interrupted;
		} else if (data[i]) {
			len = data[i] >> PB_EXT_LEN_SHIFT & 0xff;
			*others += (type != PB_EXT_PAD && type != PB_EXT_TIME &&
				    type != PB_EXT_LONG) || !len ||
				   (type == PB_EXT_LONG &&
				    (data[i] >> PB_EXT_SITE_SHIFT & PB_SITE_MASK) != interrupted);
			len += !len;
		}
	}
	return nr;
}

/* Runs in the child. Checks that the child's chunks have all its records, and no other records.
 * Returns the exit status: 0, or another number for each check that can fail. */
static int childs_chunks(uint32_t interrupted)
{
	uint32_t records = 0, others = 0, written = 0;

	for (int i = 0; i < CHUNKS; i++)
		if (chunk(i)->serial == w.serial)
			records += records_in(chunk(i), interrupted, &others);
	for (uint32_t i = 0; i < next_record; i++)
		written += i != interrupted && done[i];
	if (((struct pb_chunk *)pb_chunk_of(w.pos))->serial != w.serial)
		return 3;
	return records != written ? 4 : others ? 5 : 0;
}

/* Runs in the parent. Writes records until the chunk is full. With FORK_RECORD, also drains the
 * chunk, so that the child can take the same chunk. Then lets the child go on, and checks the
 * child's status and the chunks. */
static void check_child(long k, enum kind kind)
{
	static uint8_t before[CHUNKS * PB_CHUNK_SIZE];
	uint8_t numbers[256] = { 0 };
	int status = 0;

	put(LONG);
	fill_chunk();
	put(SHORT);
	put(SHORT);
	if (nested == FORK_RECORD)
		drain(numbers);
	for (int i = 0; i < CHUNKS && nested == FORK_RECORD; i++)
		if (chunk(i)->state == PB_CHUNK_FREE)
			pb_ring_map.taken[0] &= ~(1ul << i);
	memcpy(before, ring + CHUNKS_AT, sizeof(before));
	close(go_on[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status)
		fail_msg("the child of step %ld of kind %d ends with %x", k, kind, status);
	for (int i = 0; i < CHUNKS; i++) {
		const struct pb_chunk *was = (void *)(before + (size_t)i * PB_CHUNK_SIZE);

		if (was->serial == w.serial && was->state != PB_CHUNK_FREE &&
		    memcmp(was, chunk(i), PB_CHUNK_SIZE))
			fail_msg("the child of step %ld of kind %d has changed its parent's "
				 "chunk %lu", k, kind, was->seq);
		if (chunk(i)->serial != w.serial)
			chunk(i)->state = PB_CHUNK_FREE;
	}
	check_all(numbers);
}

/* Forks at step k of a record. first: the thread has no chunk yet. left: number of free bytes in
 * the thread's chunk. Returns false if the record takes fewer than k steps. */
static bool forked_at_step(struct step_path *path, long k, enum kind kind, bool zeroing, bool first,
			   uint64_t left)
{
	uint32_t interrupted;

	begin(zeroing);
	if (!first)
		put(SHORT);
	while (!first && (w.pos & (PB_CHUNK_SIZE - 1)) < PB_CHUNK_LIMIT - left)
		put(SHORT);
	interrupted = next_record++;
	begin_steps(path, k, NULL);
	put_as(interrupted, kind);
	end_steps();
	if (is_child) {
		put(SHORT);
		put(SHORT);
		_exit(childs_chunks(interrupted));
	}
	if (step < k)
		return false;
	step_at = 0;
	check_child(k, kind);
	return true;
}

static void forks(enum nested how)
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_NODEFER };

	sigaction(SIGTRAP, &sa, NULL);
	nested = how;
	jump = false;
	for (enum kind kind = SHORT; kind <= ESCAPE; kind++) {
		struct step_path paths[4] = { 0 };
		long k, stride = all ? 1 : kind == SHORT ? 13 : 61;

		for (k = 1 + how % stride; forked_at_step(&paths[0], k, kind, false, false, 0);
		     k += stride)
			;
		assert_true(k > 100);
		for (k = 1 + how % stride; forked_at_step(&paths[1], k, kind, false, true, 0);
		     k += stride)
			;
		for (k = 1; forked_at_step(&paths[2], k, kind, false, false, 4000);
		     k += all ? 1 : 5)
			;
		/* zeroing takes one step for each word */
		for (k = 1; kind == SHORT && forked_at_step(&paths[3], k, kind, true, false, 0);
		     k += 511)
			;
	}
}

void a_child_goes_on(void **state)
{
	forks(FORK);
}

void a_child_with_its_parents_chunk_goes_on(void **state)
{
	forks(FORK_RECORD);
}
