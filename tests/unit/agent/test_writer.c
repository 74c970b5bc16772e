/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests the writer of the ring. The writer writes a record under single-stepping. At the k-th step,
 * for each k, a signal handler does nothing, writes a record, or writes so many records that the
 * writer goes on to another chunk. After this, the handler returns or leaves by a jump.
 *
 * Each record that was written completely must be in the ring exactly once. Any other record must
 * be in the ring at most once. No chunk may be written beyond its end, and no chunk may be lost. If
 * no chunk was free, the handler may get a chunk that has become free since. In this case the
 * interrupted record has room, too.
 *
 * In other tests, the handler forks. First the parent fills the chunk. Next the child goes on with
 * the interrupted record. The child must not change any byte of the parent's chunks.
 *
 * The argument "all" tests each instruction for each kind of record. Without the argument, only
 * some instructions are tested.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>

#include "ring/change.h"
#include "ring/writer.h"

#define CHUNKS		24
#define CHUNKS_AT	(8 * PB_CHUNK_SIZE)
#define SIZE		(CHUNKS_AT + CHUNKS * PB_CHUNK_SIZE)
#define MAX_RECORDS	200000
#define TRAP_FLAG	0x100
#define TIME		1000

enum nested { NOTHING, RECORD, CHANGE, SUPPLY, FORK, FORK_RECORD };
enum kind { SHORT, ENTRY, LONG, ESCAPE };

static uint8_t *ring;
static struct pb_writer w;
static uint32_t next_record;
static uint8_t done[MAX_RECORDS], seen[MAX_RECORDS];
static sigjmp_buf out;
static long step, step_at, at;	/* at: the step at which the handler runs, for messages */
static enum nested nested;
static bool jump, all, is_child;
static int go_on[2];
static pid_t child;

/* forked.c reads this section. The hit path defines it, but isn't linked into this test. */
static const uint32_t no_words[3] __attribute__((section("pb_forked_words"), used));

static uint64_t no_time(void)
{
	return TIME;
}

static size_t one_open_call(struct pb_writer *writer, struct pb_owner o, uint64_t *data, size_t max,
			    uint32_t *depth, const void *ending)
{
	pb_own_store(o, &data[0], pb_ext_record(OPEN, 1, 0));
	pb_own_store(o, &data[1], TIME);
	*depth = 1;
	return 2;
}

static struct pb_chunk *chunk(int i)
{
	return (void *)(ring + CHUNKS_AT + (size_t)i * PB_CHUNK_SIZE);
}

/* Writes a record, which is identified by its site. */
static __attribute__((noinline)) void put_as(uint32_t n, enum kind kind)
{
	uint64_t site = (uint64_t)n << PB_SITE_SHIFT;
	bool ok = false;

	assert_true(n < MAX_RECORDS);
	w.slot = (uint64_t)__builtin_frame_address(0);
	switch (kind) {
	case SHORT:
		ok = pb_writer_put(&w, PB_TAG_LEAF | site, TIME, PB_LEAF_BITS, NULL, 0);
		break;
	case ENTRY:
		ok = pb_writer_put_entry(&w, PB_TAG_ENTRY | site, TIME);
		break;
	case LONG:
		ok = pb_writer_put_long(&w, n, TIME - 7, TIME);
		break;
	case ESCAPE:
		ok = pb_writer_put(&w, PB_TAG_LEAF | site, w.last + (1ull << 40), PB_LEAF_BITS,
				   NULL, 0);
		break;
	}
	done[n] = ok;
}

static void put(enum kind kind)
{
	put_as(__atomic_fetch_add(&next_record, 1, __ATOMIC_RELAXED), kind);
}

static void fill_chunk(void)
{
	uint64_t at = pb_chunk_of(w.pos);

	while (pb_chunk_of(w.pos) == at && (w.pos & (PB_CHUNK_SIZE - 1)) < PB_CHUNK_LIMIT - 8)
		put(SHORT);
}

/* Forks. The child's thread gets a new state, as the engine makes it at the end of a handler. */
static void fork_here(ucontext_t *uc)
{
	char c;

	assert_int_equal(pipe(go_on), 0);
	child = fork();
	assert_true(child >= 0);
	if (child) {
		close(go_on[0]);
		return;
	}
	is_child = true;
	close(go_on[1]);
	if (read(go_on[0], &c, 1))
		_exit(2);
	memset(done, 0, next_record);
	pb_writer_init(&w, 2, 2, 1);
	for (int i = 0; nested == FORK_RECORD && i < 1000; i++)
		put(SHORT);
	pb_own_resume(uc, (uint64_t)ring, SIZE);
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	uint64_t nr, slot = w.slot;

	if (++step != step_at)
		return;
	uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	if (nested >= FORK) {
		fork_here(uc);
		return;
	}
	nr = pb_writer_interrupted(&w, (uint64_t)uc->uc_mcontext.gregs[REG_RSP],
				   (uint64_t)__builtin_frame_address(0) + 8);
	if (nested == SUPPLY) {
		pb_ring_map.taken[0] &= ~2ul;
		chunk(1)->state = PB_CHUNK_FREE;
	}
	if (nested == RECORD || nested == SUPPLY)
		put(SHORT);
	for (int i = 0; nested == CHANGE && i < 2; i++) {
		fill_chunk();
		put(SHORT);
		put(LONG);
	}
	if (jump)
		siglongjmp(out, 1);
	pb_writer_resumed(&w, nr);
	w.slot = slot;
}

static inline void trap_flag(bool on)
{
	uint64_t flags;

	__asm__ volatile("pushfq; pop %0" : "=r"(flags) : : "memory");
	flags = on ? flags | TRAP_FLAG : flags & ~(uint64_t)TRAP_FLAG;
	__asm__ volatile("push %0; popfq" : : "r"(flags) : "memory", "cc");
}

static void one_record(uint32_t site)
{
	if (site >= next_record)
		fail_msg("no such record: %u of %u (step %ld)", site, next_record, at);
	if (seen[site]++)
		fail_msg("record %u is there twice (step %ld)", site, at);
}

static void read_chunk(struct pb_chunk *c, uint8_t *numbers)
{
	const uint64_t *data = (const uint64_t *)(c + 1);
	uint32_t end = (PB_CHUNK_SIZE - PB_CHUNK_HEADER) / 8;

	while (end && !data[end - 1])
		end--;
	if (c->state == PB_CHUNK_OPEN && end * 8 <= c->used)
		return;
	if (c->state == PB_CHUNK_FULL && PB_CHUNK_HEADER + end * 8 < PB_CHUNK_LIMIT)
		fail_msg("the words that are missing at the end of chunk %lu aren't seen "
			 "(step %ld)", c->seq, at);
	if (numbers[c->seq]++)
		fail_msg("two chunks have the number %lu (step %ld)", c->seq, at);
	for (uint32_t i = 0; i < end;) {
		uint64_t word = data[i];
		unsigned type = word >> PB_EXT_TYPE_SHIFT & 0x3f;
		uint32_t len = word & PB_TAG_MASK ? 1 : word >> PB_EXT_LEN_SHIFT & 0xff;

		if (word & PB_TAG_MASK)
			one_record(word >> PB_SITE_SHIFT & PB_SITE_MASK);
		else if (word && type == PB_EXT_LONG)
			one_record(word >> PB_EXT_SITE_SHIFT & PB_SITE_MASK);
		i += len ? len : 1;
	}
}

static void drain(uint8_t *numbers)
{
	for (int i = 0; i < CHUNKS; i++) {
		if (chunk(i)->state != PB_CHUNK_FULL)
			continue;
		read_chunk(chunk(i), numbers);
		chunk(i)->state = PB_CHUNK_FREE;
	}
}

/* Drains and checks all records. Returns how many chunks aren't FREE. These chunks become free only
 * when the thread ends. */
static int check_all(uint8_t *numbers)
{
	int held = 0;

	drain(numbers);
	for (int i = 0; i < CHUNKS; i++) {
		if (chunk(i)->state == PB_CHUNK_OPEN || chunk(i)->state == PB_CHUNK_HELD)
			read_chunk(chunk(i), numbers);
		held += chunk(i)->state != PB_CHUNK_FREE;
	}
	for (uint32_t i = 0; i < next_record; i++)
		if (done[i] && !seen[i])
			fail_msg("record %u of %u is missing (step %ld)", i, next_record, at);
	return held;
}

/* Makes a new ring. zeroing: the ring's chunks were used once, so the writer must zero them. */
static void begin(bool zeroing)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0);

	memset(ring + CHUNKS_AT, zeroing ? 0xa5 : 0, (size_t)CHUNKS * PB_CHUNK_SIZE);
	for (int i = 0; i < CHUNKS; i++)
		*chunk(i) = (struct pb_chunk){ .uses = zeroing };
	*(struct pb_ring *)ring = (struct pb_ring){
		.magic = PB_RING_MAGIC, .version = PB_RING_VERSION, .usable = CHUNKS,
	};
	assert_int_equal(pb_ring_attach(ring, SIZE, 8, CHUNKS, 4096, CHUNKS_AT,
					PB_RING_DISCARD), 0);
	pb_ring_map.taken[0] = 0;
	pb_writer_init(&w, 1, 1, 1);
	w.own_lo = here - (4 << 20);
	w.own_hi = here + 4096;
	memset(done, 0, next_record);
	memset(seen, 0, next_record);
	next_record = 1;
}

/* Interrupts a record at step k. Returns false if the record takes fewer than k steps. */
static bool at_step(long k, enum kind kind, bool zeroing, int *held)
{
	uint8_t numbers[256] = { 0 };
	bool reached;

	begin(zeroing);
	put(SHORT);
	fill_chunk();
	put(SHORT);
	step = 0;
	step_at = at = k;
	if (!sigsetjmp(out, 1)) {
		trap_flag(true);
		put(kind);
		trap_flag(false);
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
		int worst = 0, held, many = 0, stride = all ? 1 : kind == SHORT ? 3 : 29;
		long k, n = 0;

		for (k = 1 + how % stride; at_step(k, kind, false, &held); k += stride) {
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
		for (k = 1; kind == SHORT && at_step(k, kind, true, &held); k += zero_stride)
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

/* Returns whether a reader sees how many words of the current chunk were reserved. A reader takes
 * the chunk's last word that isn't zero for the end. So such a word must be at or after the last
 * reserved word. */
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
static bool left_at_step(long k, enum kind kind, uint64_t left)
{
	uint8_t numbers[256] = { 0 };

	begin(false);
	put(SHORT);
	while ((w.pos & (PB_CHUNK_SIZE - 1)) < PB_CHUNK_LIMIT - left)
		put(SHORT);
	step = 0;
	step_at = at = k;
	if (!sigsetjmp(out, 1)) {
		trap_flag(true);
		put(kind);
		trap_flag(false);
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
		for (int i = 0; i < 3; i++)
			for (long k = 1; left_at_step(k, kind, left[i]); k++)
				;
}

/* No chunk is free, and a jump may abandon each attempt right after its reservation. Even after
 * many attempts, the position must stay in the chunk's last PB_CHUNK_DEAD_ZONE bytes, in which no
 * record begins. */
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
		step = 0;
		step_at = 1 + i % 40;
		if (!sigsetjmp(out, 1)) {
			trap_flag(true);
			put(LONG);
			trap_flag(false);
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
	step = 0;
	step_at = at = k;
	trap_flag(true);
	put(SHORT);
	trap_flag(false);
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
 * Returns the exit status: 0, or which check failed. */
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
 * chunk, so that the child gets it. Checks the child's status and the chunks. */
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
static bool forked_at_step(long k, enum kind kind, bool zeroing, bool first, uint64_t left)
{
	uint32_t interrupted;

	begin(zeroing);
	if (!first)
		put(SHORT);
	while (!first && (w.pos & (PB_CHUNK_SIZE - 1)) < PB_CHUNK_LIMIT - left)
		put(SHORT);
	interrupted = next_record++;
	step = 0;
	step_at = at = k;
	trap_flag(true);
	put_as(interrupted, kind);
	trap_flag(false);
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
		long k, stride = all ? 1 : kind == SHORT ? 13 : 61;

		for (k = 1 + how % stride; forked_at_step(k, kind, false, false, 0); k += stride)
			;
		assert_true(k > 100);
		for (k = 1 + how % stride; forked_at_step(k, kind, false, true, 0); k += stride)
			;
		for (k = 1; forked_at_step(k, kind, false, false, 4000); k += all ? 1 : 5)
			;
		/* zeroing takes one step for each word */
		for (k = 1; kind == SHORT && forked_at_step(k, kind, true, false, 0); k += 511)
			;
	}
}

static void a_child_goes_on(void **state)
{
	forks(FORK);
}

static void a_child_with_its_parents_chunk_goes_on(void **state)
{
	forks(FORK_RECORD);
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
		cmocka_unit_test(a_child_goes_on),
		cmocka_unit_test(a_child_with_its_parents_chunk_goes_on),
	};

	all = argc > 1 && !strcmp(argv[1], "all");
	/* the ring is shared with children */
	ring = mmap(NULL, SIZE + PB_CHUNK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	assert_true(ring != MAP_FAILED);
	ring += -(uint64_t)ring % PB_CHUNK_SIZE;
	pb_ring_clock = no_time;
	pb_ring_open_calls = one_open_call;
	pb_ring_unseen = 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
