/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests the writer of the ring. The writer writes a record under single-stepping. At the k-th step,
 * for each k, a signal handler does nothing, writes a record, or writes so many records that the
 * writer goes on to another chunk. After this, the handler returns or leaves by a jump.
 *
 * Each record that was written completely must be in the ring exactly once. Any other record must
 * be in the ring at most once. No chunk may be written beyond its end, and no chunk may be lost. In
 * one test no chunk is free at first, and the handler frees a chunk and takes it. After this, the
 * interrupted record must find room in this chunk, except at a few steps.
 *
 * In the tests of test_writer_fork.c, the handler forks.
 *
 * Some tests check w.left, the list of left chunks. It has the chunks that the writer has left and
 * not yet handed over to the recorder.
 *
 * The argument "all" tests each instruction for each kind of record. Without the argument, only
 * some instructions are tested.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <sys/mman.h>
#include "ring/change.h"
#include "ring/ring_map.h"
#include "ring/supply.h"
#include "test_writer_fork.h"
#include "writer_step.h"

/* Interrupts a record at step k. Returns false if the record takes fewer than k steps. */
static bool at_step(struct step_path *path, long k, enum kind kind, bool zeroing, int *held)
{
	uint8_t numbers[256] = { 0 };
	bool reached;

	begin(zeroing);
	put(SHORT);
	fill_chunk();
	put(SHORT);
	if (!sigsetjmp(out, 1)) {
		begin_steps(path, k, NULL);
		put(kind);
		end_steps();
	}
	reached = step >= k;
	step_at = 0;
	for (int i = 0; i < 3; i++) {
		put(LONG);
		fill_chunk();
		put(SHORT);
		drain(numbers);
	}
	*held = check_all(numbers);
	assert_true(((struct pb_chunk *)pb_chunk_of(w.pos))->seq >= 2);
	assert_true(w.pos - pb_chunk_of(w.pos) <= PB_CHUNK_LIMIT + 64);
	return reached;
}

static void all_steps(enum nested how, bool by_jump)
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_NODEFER };
	static const int zero_stride = 61;

	sigaction(SIGTRAP, &sa, NULL);
	nested = how;
	jump = by_jump;
	for (enum kind kind = SHORT; kind <= ESCAPE; kind++) {
		struct step_path path = { 0 }, zeroing = { 0 };
		int worst = 0, held, many = 0, stride = all ? 1 : kind == SHORT ? 3 : 29;
		long k, n = 0;

		for (k = 1 + how % stride; at_step(&path, k, kind, false, &held); k += stride) {
			worst = held > worst ? held : worst;
			many += held > 1;
			if (held > 1 && getenv("SHOW"))
				printf("%d: %ld\n", kind, k);
			n++;
		}
		assert_true(k > 100);
		/* the thread holds its current chunk; after a jump at a few of the instructions, it
		 * holds one or two more chunks */
		assert_true(worst <= 3);
		if (many > n / 8)
			fail_msg("%d of %ld jumps left a chunk behind", many, n);
		for (k = 1; kind == SHORT && at_step(&zeroing, k, kind, true, &held);
		     k += zero_stride)
			;
	}
}

static void returns_without_a_record(void **state)
{
	all_steps(NOTHING, false);
}

static void returns_after_a_record(void **state)
{
	all_steps(RECORD, false);
}

static void returns_after_a_change(void **state)
{
	all_steps(CHANGE, false);
}

static void jumps_without_a_record(void **state)
{
	all_steps(NOTHING, true);
}

static void jumps_after_a_record(void **state)
{
	all_steps(RECORD, true);
}

static void jumps_after_a_change(void **state)
{
	all_steps(CHANGE, true);
}

/* Returns whether a reader sees how many words of the current chunk were reserved. For a reader, a
 * chunk ends after its last word that isn't zero. So the last reserved word must not be zero. If
 * the position is in the dead zone, one word that isn't zero is enough, from the word before the
 * dead zone on. */
static bool shows_its_end(void)
{
	uint64_t chunk_now = pb_chunk_of(w.pos);
	const uint64_t *p = (const uint64_t *)w.pos - 1;
	const uint64_t *end = (const uint64_t *)(chunk_now + PB_CHUNK_SIZE);

	if (chunk_now == pb_no_chunk || w.pos - chunk_now == PB_CHUNK_HEADER)
		return true;
	if (w.pos - chunk_now < PB_CHUNK_LIMIT)
		end = p + 1;
	else
		p = (const uint64_t *)(chunk_now + PB_CHUNK_LIMIT) - 1;
	while (p < end && !*p)
		p++;
	return p < end;
}

/* A jump abandons a record that is reserved, but not written. Before this record, its chunk has
 * `left` bytes of room. A reader must see that there was a record, whether the thread goes on or
 * not. Returns false if the record takes fewer than k steps. */
static bool left_at_step(struct step_path *path, long k, enum kind kind, uint64_t left)
{
	uint8_t numbers[256] = { 0 };

	begin(false);
	put(SHORT);
	while ((w.pos & (PB_CHUNK_SIZE - 1)) < PB_CHUNK_LIMIT - left)
		put(SHORT);
	if (!sigsetjmp(out, 1)) {
		begin_steps(path, k, NULL);
		put(kind);
		end_steps();
	}
	if (step < k)
		return false;
	step_at = 0;
	if (!shows_its_end())
		fail_msg("a reader doesn't see the last reserved words "
			 "(step %ld, kind %d, %lu bytes of room)", k, kind, left);
	put(SHORT);
	fill_chunk();
	put(SHORT);
	put(SHORT);
	drain(numbers);
	check_all(numbers);
	return true;
}

static void what_is_never_written_is_seen(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_NODEFER };
	static const uint64_t left[] = { 8, 16, 8000 };

	sigaction(SIGTRAP, &sa, NULL);
	nested = NOTHING;
	jump = true;
	for (enum kind kind = SHORT; kind <= ESCAPE; kind++)
		for (int i = 0; i < 3; i++) {
			struct step_path path = { 0 };

			for (long k = 1; left_at_step(&path, k, kind, left[i]); k++)
				;
		}
}

/* No chunk is free. The thread tries to write many records, and a jump may abandon each record
 * right after its words were reserved. Nevertheless the writer's position must stay in the chunk's
 * last PB_CHUNK_DEAD_ZONE bytes, in which no record begins. */
static void many_jumps_at_the_limit(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_NODEFER };
	uint64_t chunk_now;

	sigaction(SIGTRAP, &sa, NULL);
	nested = NOTHING;
	jump = true;
	begin(false);
	put(SHORT);
	for (int i = 0; i < CHUNKS; i++)
		if (chunk(i)->state == PB_CHUNK_FREE)
			chunk(i)->state = PB_CHUNK_READING;
	fill_chunk();
	put(SHORT);
	chunk_now = pb_chunk_of(w.pos);
	for (volatile int i = 0; i < 4000; i++) {
		if (!sigsetjmp(out, 1)) {
			begin_steps(NULL, 1 + i % 40, NULL);
			put(LONG);
			end_steps();
		}
		assert_true(w.pos - chunk_now < PB_CHUNK_SIZE);
	}
}

/* No chunk is free until the handler frees a chunk and takes it. Returns false if the record takes
 * fewer than k steps. */
static bool supplied_at_step(long k, bool *dropped)
{
	uint8_t numbers[256] = { 0 };
	uint32_t interrupted;

	begin(false);
	put(SHORT);
	for (int i = 0; i < CHUNKS; i++)
		if (chunk(i)->state == PB_CHUNK_FREE)
			chunk(i)->state = PB_CHUNK_READING;
	pb_ring_map.taken[0] = ~0ul;
	while ((w.pos & (PB_CHUNK_SIZE - 1)) < PB_CHUNK_LIMIT)
		put(SHORT);
	interrupted = next_record;
	/* no path: how long the writer looks for a chunk depends on earlier rounds */
	begin_steps(NULL, k, NULL);
	put(SHORT);
	end_steps();
	if (step < k)
		return false;
	step_at = 0;
	*dropped = !done[interrupted];
	for (int i = 0; i < CHUNKS; i++)
		if (chunk(i)->state == PB_CHUNK_READING)
			chunk(i)->state = PB_CHUNK_FREE;
	check_all(numbers);
	return true;
}

static void a_handler_gets_the_last_chunk(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_NODEFER };
	long k, dropped = 0;
	bool this_one;

	sigaction(SIGTRAP, &sa, NULL);
	nested = SUPPLY;
	jump = false;
	for (k = 1; supplied_at_step(k, &this_one); k++)
		dropped += this_one;
	assert_true(k > 100);
	/* The record may be dropped only if the writer had given it up before the handler ran. That
	 * is the case at few steps. */
	if (dropped > k / 4)
		fail_msg("the record was dropped at %ld of %ld steps", dropped, k);
}

/* Writes a record. Meanwhile the handler acts at step k. If step_later isn't 0, the handler also
 * acts at the step with this number. */
static void put_interrupted(struct step_path *path, long k)
{
	begin_steps(path, k, NULL);
	put(SHORT);
	end_steps();
	step_at = step_later = 0;
}

/* Begins a round with a full chunk. */
static void begin_full(void)
{
	begin(false);
	put(SHORT);
	fill_chunk();
	put(SHORT);
}

/* Returns true if the list of left chunks names a chunk that is free. */
static bool names_a_free_chunk(void)
{
	for (int i = 0; i < PB_WRITER_LEFT; i++) {
		const struct pb_chunk *c = (void *)pb_chunk_of((uint64_t)w.left[i]);

		if (c && c->state == PB_CHUNK_FREE)
			return true;
	}
	return false;
}

/* Handlers interrupt a change of chunks at steps k and k + 1. Each handler goes on to another chunk
 * and drains the full chunks. So the chunk that the interrupted change leaves becomes free. Returns
 * whether the interrupted change then adds this free chunk to the list of left chunks. */
static bool leaves_a_free_chunk(struct step_path *path, long k, uint8_t *numbers)
{
	begin_full();
	nested = DRAIN;
	drained = numbers;
	step_later = k + 1;
	put_interrupted(path, k);
	return names_a_free_chunk();
}

/* The list of left chunks names a free chunk. The next change of chunks is interrupted at step k,
 * and the handler takes that free chunk. From then on the writer must keep the chunk. If the writer
 * handed the chunk over because of the list, records would be lost. Returns false if the change
 * takes fewer than k steps. */
static bool taken_again_at_step(struct step_path paths[2], long first, long k)
{
	uint8_t numbers[256] = { 0 };
	struct pb_chunk *c;

	assert_true(leaves_a_free_chunk(&paths[0], first, numbers));
	drain(numbers);
	fill_chunk();
	put(SHORT);
	nested = RECORD;
	put_interrupted(&paths[1], k);
	drain(numbers);
	put(LONG);
	c = (void *)pb_chunk_of(w.pos);
	if (c->state != PB_CHUNK_OPEN)
		fail_msg("the chunk in force has the state %u (step %ld)", c->state, k);
	fill_chunk();
	put(SHORT);
	put(SHORT);
	check_all(numbers);
	return step >= k;
}

static void a_handler_takes_a_left_chunk_again(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_NODEFER };
	struct step_path paths[2] = { 0 };
	uint8_t numbers[256];
	long first = 0;

	sigaction(SIGTRAP, &sa, NULL);
	jump = false;
	do {
		memset(numbers, 0, sizeof(numbers));
		assert_true(++first < 1000);
	} while (!leaves_a_free_chunk(&paths[0], first, numbers));
	for (long k = 1; k < (all ? 100000 : 400) && taken_again_at_step(paths, first, k); k++)
		;
}

/* A handler interrupts a change of chunks at step k, and the handler's record changes chunks, too.
 * Returns whether both changes have added the same chunk to the list of left chunks. */
static bool enters_twice(struct step_path *path, long k, uint8_t *numbers)
{
	begin_full();
	nested = RECORD;
	drained = numbers;
	put_interrupted(path, k);
	for (int i = 1; i < PB_WRITER_LEFT; i++)
		if (w.left[i] && w.left[i] == w.left[0])
			return true;
	return false;
}

/* The list of left chunks names a chunk twice. A handler interrupts the next change of chunks at
 * step k. The handler hands that chunk over, drains it, and takes it again. Returns false if the
 * change takes fewer than k steps. */
static bool named_twice_at_step(struct step_path paths[2], long first, long k)
{
	uint8_t numbers[256] = { 0 };

	assert_true(enters_twice(&paths[0], first, numbers));
	fill_chunk();
	put(SHORT);
	nested = AGAIN;
	put_interrupted(&paths[1], k);
	drain(numbers);
	fill_chunk();
	put(SHORT);
	put(SHORT);
	check_all(numbers);
	return step >= k;
}

static void a_chunk_is_left_only_once(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_NODEFER };
	struct step_path paths[2] = { 0 };
	uint8_t numbers[256] = { 0 };
	long first = 0;

	sigaction(SIGTRAP, &sa, NULL);
	jump = false;
	while (!enters_twice(&paths[0], ++first, numbers))
		assert_true(first < 2000);
	for (long k = 1; k < (all ? 100000 : 400) && named_twice_at_step(paths, first, k);
	     k += all ? 1 : 7)
		;
}

/* Handlers that aren't reported to the writer interrupt a record at the steps k and `later`. The
 * first handler takes the chunk's last word. So the record changes chunks, and the second handler
 * interrupts this change. */
static void unseen_handlers_write_records(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_NODEFER };

	sigaction(SIGTRAP, &sa, NULL);
	jump = false;
	for (long k = 1; k < 30; k += all ? 1 : 4) {
		struct step_path to_later = { 0 };

		for (long later = k + 10; later < 1400; later += all ? 1 : 43) {
			uint8_t numbers[256] = { 0 };

			begin(false);
			pb_ring_unseen = PB_UNSEEN_PROGRAM;
			put(SHORT);
			fill_chunk();
			nested = UNSEEN;
			step_later = later;
			begin_steps(NULL, k, &to_later);
			at = later;
			put(SHORT);
			end_steps();
			step_at = step_later = 0;
			put(SHORT);
			drain(numbers);
			fill_chunk();
			put(SHORT);
			put(SHORT);
			check_all(numbers);
		}
	}
	pb_ring_unseen = 0;
}

/* A thread closes its writer, for example before an exec that will fail. A handler interrupts the
 * close at step k. Returns false if the close takes fewer than k steps. */
static bool closes_at_step(struct step_path *path, long k)
{
	uint8_t numbers[256] = { 0 };

	begin(false);
	put(SHORT);
	for (int i = 0; i < 2; i++) {
		fill_chunk();
		put(SHORT);
		put(SHORT);
		drain(numbers);
	}
	begin_steps(path, k, NULL);
	pb_writer_close(&w);
	end_steps();
	step_at = 0;
	for (int i = 0; i < 3; i++) {
		put(SHORT);
		fill_chunk();
		put(SHORT);
		put(SHORT);
		drain(numbers);
	}
	check_all(numbers);
	return step >= k;
}

static void a_handler_interrupts_the_close(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_NODEFER };
	static const enum nested what[] = { RECORD, CHANGE };

	sigaction(SIGTRAP, &sa, NULL);
	jump = false;
	may_close = true;
	for (int i = 0; i < 2; i++) {
		struct step_path path = { 0 };

		nested = what[i];
		for (long k = 1; closes_at_step(&path, k); k++)
			;
	}
	may_close = false;
}

/* The number of a chunk's uses has 32 bits. */
static void many_uses_are_counted(void **state)
{
	begin(true);
	for (int i = 0; i < CHUNKS; i++)
		chunk(i)->uses = UINT32_MAX;
	put(SHORT);
	assert_int_not_equal(((struct pb_chunk *)pb_chunk_of(w.pos))->uses, 0);
}

#define MANY_WORDS	(5 << 10)		/* 5 GiB of chunks */
#define MANY_AT		(64ull << 10)

static void first_words(uint64_t *taken, uint32_t nr)
{
	for (uint32_t i = 0; i < MANY_WORDS; i++)
		taken[i] = i < nr ? ~0ull : 0;
}

/* All chunks of the first words are taken, and free_word leads to the first word. */
static void all_of_a_large_buffer_is_used(void **state)
{
	uint32_t nr = MANY_WORDS * 64;
	uint64_t size = MANY_AT + (uint64_t)nr * PB_CHUNK_SIZE;
	uint8_t *map = mmap(NULL, size + PB_CHUNK_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *many = map + -(uint64_t)map % PB_CHUNK_SIZE;
	struct pb_ring *r = (struct pb_ring *)many;

	if (map == MAP_FAILED)
		skip();
	begin(false);
	*r = (struct pb_ring){
		.magic = PB_RING_MAGIC, .version = PB_RING_VERSION, .usable = nr,
	};
	assert_int_equal(pb_ring_attach(many, size, 8, nr, 4096, MANY_AT, PB_RING_DISCARD), 0);
	first_words(pb_ring_map.taken, 1500);
	assert_non_null(pb_supply_take(pb_writer_owner(&w)));
	assert_int_equal(r->free_word, 1500);
	/* one search doesn't reach this word, but the next one does */
	first_words(pb_ring_map.taken, MANY_WORDS - 10);
	r->free_word = 0;
	assert_null(pb_supply_take(pb_writer_owner(&w)));
	assert_non_null(pb_supply_take(pb_writer_owner(&w)));
	munmap(map, size + PB_CHUNK_SIZE);
}

/* Takes a chunk, which becomes FULL with this number. Returns its former number. */
static uint64_t take_next(uint64_t number)
{
	struct pb_chunk *c = pb_supply_take(pb_writer_owner(&w));
	uint64_t before = c->seq;

	c->seq = number;
	c->state = PB_CHUNK_FULL;
	return before;
}

/* In overwrite mode, a change of the number of usable chunks doesn't move the position. */
static void the_oldest_chunk_is_taken_over(void **state)
{
	struct pb_ring *r = (struct pb_ring *)ring;
	uint64_t n = 0;

	begin(false);
	pb_ring_map.mode = PB_RING_OVERWRITE;
	r->nr_chunks = CHUNKS;
	r->usable = 1ull << 32 | 16;		/* one thread has begun, and counts already */
	while (n < 100 * 16 + 5)
		take_next(++n);
	r->usable++;
	assert_int_equal(take_next(++n), 0);		/* the new chunk is free */
	assert_int_equal(take_next(++n), 100 * 16 + 5 - 15);
	r->usable--;
	assert_int_equal(take_next(++n), 100 * 16 + 5 - 14);
	r->next_chunk = 16;
	assert_int_equal(take_next(++n), 100 * 16 + 1);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(returns_without_a_record),
		cmocka_unit_test(returns_after_a_record),
		cmocka_unit_test(returns_after_a_change),
		cmocka_unit_test(jumps_without_a_record),
		cmocka_unit_test(jumps_after_a_record),
		cmocka_unit_test(jumps_after_a_change),
		cmocka_unit_test(what_is_never_written_is_seen),
		cmocka_unit_test(many_jumps_at_the_limit),
		cmocka_unit_test(a_handler_gets_the_last_chunk),
		cmocka_unit_test(a_handler_takes_a_left_chunk_again),
		cmocka_unit_test(a_chunk_is_left_only_once),
		cmocka_unit_test(unseen_handlers_write_records),
		cmocka_unit_test(a_handler_interrupts_the_close),
		cmocka_unit_test(all_of_a_large_buffer_is_used),
		cmocka_unit_test(the_oldest_chunk_is_taken_over),
		cmocka_unit_test(many_uses_are_counted), cmocka_unit_test(a_child_goes_on),
		cmocka_unit_test(a_child_with_its_parents_chunk_goes_on),
	};

	all = argc > 1 && !strcmp(argv[1], "all");
	make_ring();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
