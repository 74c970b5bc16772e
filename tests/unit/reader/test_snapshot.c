/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests copies of a ring (src/reader/snapshot.c) while threads write to the ring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include "../test_dir.h"
#include "abi/record.h"
#include "reader/datadir_writer.h"
#include "reader/snapshot.h"

#define THREADS		100		/* more than the snapshot copies in one write */
#define CHUNKS		600
#define SIZE		(PB_CHUNK_SIZE * (CHUNKS + 2ul))
#define FULL_WORDS	2000		/* number of records in a FULL chunk */
#define RECORD		(1ull << PB_SITE_SHIFT | PB_TAG_LEAF)

static struct pb_ring *ring;
static int ring_fd;
static uint64_t *taken;
static uint32_t open_chunk[THREADS], next;	/* indices of chunks */
static bool overwrite;		/* the chunks that the threads leave are overwritten at once */

static struct pb_chunk *chunk(uint32_t i)
{
	return (void *)((char *)ring + ring->chunks_offset + i * (size_t)PB_CHUNK_SIZE);
}

static void append(uint32_t thread, int nr)
{
	uint64_t *data = (uint64_t *)(chunk(open_chunk[thread]) + 1);

	while (*data)
		data++;
	while (nr--)
		*data++ = RECORD;
}

static void open_next(uint32_t thread, uint64_t seq)
{
	uint32_t i = next++;

	assert_true(i < CHUNKS);
	chunk(i)->serial = thread + 1;
	chunk(i)->seq = seq;
	taken[i / 64] |= 1ull << i % 64;
	chunk(i)->state = PB_CHUNK_OPEN;
	open_chunk[thread] = i;
	append(thread, 1);
}

/* Makes the thread's chunk FULL, and opens the next chunk. */
static void go_on(uint32_t thread)
{
	struct pb_chunk *c = chunk(open_chunk[thread]);

	append(thread, FULL_WORDS - 1);
	open_next(thread, c->seq + 1);
	c->state = overwrite ? PB_CHUNK_TAKEN : PB_CHUNK_FULL;
}

/* As often as this number says, each thread goes on to its next chunk while the snapshot writes. */
static unsigned go_on_times;
int __real_pb_datadir_chunks(struct pb_datadir *w, const struct iovec *iov, int nr, uint64_t bytes);
int __wrap_pb_datadir_chunks(struct pb_datadir *w, const struct iovec *iov, int nr, uint64_t bytes);
int __wrap_pb_datadir_chunks(struct pb_datadir *w, const struct iovec *iov, int nr, uint64_t bytes)
{
	for (uint32_t t = 0; go_on_times && t < THREADS; t++)
		go_on(t);
	go_on_times -= go_on_times > 0;
	return __real_pb_datadir_chunks(w, iov, nr, bytes);
}

static int begin(void **state)
{
	ring_fd = memfd_create("ring", MFD_CLOEXEC);
	if (ring_fd < 0 || ftruncate(ring_fd, SIZE))
		return -1;
	ring = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, 0);
	if (ring == MAP_FAILED)
		return -1;
	*ring = (struct pb_ring){
		.magic = PB_RING_MAGIC, .version = PB_RING_VERSION, .mode = PB_RING_OVERWRITE,
		.nr_threads = THREADS, .nr_chunks = CHUNKS, .nr_buffer = CHUNKS, .size = SIZE,
		.threads_offset = 4096, .chunks_offset = 2 * PB_CHUNK_SIZE,
		.next_serial = THREADS,
	};
	taken = (uint64_t *)((char *)ring + pb_ring_taken_offset(4096, THREADS));
	next = 0;
	for (uint32_t t = 0; t < THREADS; t++)
		open_next(t, 0);
	return 0;
}

static int end(void **state)
{
	go_on_times = 0;
	overwrite = false;
	close(ring_fd);
	return munmap(ring, SIZE);
}

static void no_name(void *arg, uint32_t index, const struct pb_ring_thread *t,
		    char comm[PB_SNAPSHOT_COMM])
{
}

static unsigned too_short;	/* number of FULL chunks that lack records in the last snapshot */

/* Takes a snapshot, and stores the number of records of each chunk that is in it. */
static uint64_t take(bool newest, uint32_t records[THREADS][CHUNKS])
{
	struct pb_snapshot s = { .ring = ring, .geometry = *ring, .newest = newest,
				 .thread_name = no_name, .why = "a test" };
	struct pb_datadir session;
	char from[64], to[64], file[80], err[5000];
	struct pb_chunk head;

	snprintf(from, sizeof(from), "%s/session", dir);
	snprintf(to, sizeof(to), "%s/snapshot", dir);
	assert_int_equal(pb_datadir_open(&session, from, err, sizeof(err)), 0);
	s.from = session.dir_fd;
	assert_int_equal(pb_snapshot_write(&s, to, err, sizeof(err)), 0);
	pb_datadir_undo(&session);

	snprintf(file, sizeof(file), "%s/chunks", to);
	FILE *f = fopen(file, "rb");
	assert_non_null(f);
	fseek(f, sizeof(struct pb_data_header), SEEK_SET);
	memset(records, 0, sizeof(records[0]) * THREADS);
	too_short = 0;
	while (fread(&head, sizeof(head), 1, f) == 1) {
		too_short += head.state == PB_CHUNK_FULL && head.used / 8 < FULL_WORDS;
		assert_in_range(head.serial, 1, THREADS);
		assert_true(head.seq < CHUNKS);
		assert_int_equal(records[head.serial - 1][head.seq], 0);
		records[head.serial - 1][head.seq] = head.used / 8;
		fseek(f, head.used, SEEK_CUR);
	}
	fclose(f);
	assert_int_equal(pb_datadir_remove(to), 0);
	return s.missed;
}

static uint32_t records[THREADS][CHUNKS];

/* If a chunk and the thread's next chunk are both in the snapshot, the first has all its
 * records. */
static void no_hidden_gap(void **state)
{
	for (uint32_t t = 0; t < THREADS; t += 2)
		go_on(t);
	go_on_times = 3;
	assert_int_equal(take(false, records), 0);
	for (uint32_t t = 0; t < THREADS; t++) {
		uint32_t chunks = 0;

		for (uint32_t seq = 0; seq < CHUNKS; seq++) {
			chunks += records[t][seq] > 0;
			if (seq && records[t][seq] && records[t][seq - 1])
				assert_int_equal(records[t][seq - 1], FULL_WORDS);
		}
		assert_int_equal(records[t][0], t % 2 && chunks == 1 ? records[t][0] : FULL_WORDS);
		assert_true(chunks >= 1);
	}
}

/* If a thread's chunk is overwritten before it is copied, the snapshot has the next one. The search
 * for the next one doesn't allocate memory for chunks that were never used. */
static void overwritten(void **state)
{
	uint64_t missed;

	overwrite = true;
	go_on_times = 1;
	missed = take(false, records);
	assert_true(missed > 0 && missed < THREADS);
	for (uint32_t t = 0; t < THREADS; t++) {
		assert_int_equal(!records[t][0], records[t][1]);
		missed -= !records[t][0];
	}
	assert_int_equal(missed, 0);
	assert_int_equal(lseek(ring_fd, (off_t)((char *)chunk(next) - (char *)ring), SEEK_DATA),
			 -1);
	assert_int_equal(errno, ENXIO);
}

/* Without a change meanwhile, a snapshot has all records. */
static void all_records(void **state)
{
	for (uint32_t t = 0; t < THREADS; t += 2)
		go_on(t);
	assert_int_equal(take(false, records), 0);
	for (uint32_t t = 0; t < THREADS; t++) {
		assert_int_equal(records[t][0], t % 2 ? 1 : FULL_WORDS);
		assert_int_equal(records[t][1], t % 2 ? 0 : 1);
	}
}

/* A thread may have left a chunk that is still OPEN. */
static void two_open(void **state)
{
	go_on(0);
	chunk(0)->state = PB_CHUNK_OPEN;
	assert_int_equal(take(false, records), 0);
	assert_int_equal(records[0][0], FULL_WORDS);
	assert_int_equal(records[0][1], 1);
}

/* With `newest`, the snapshot has the chunk that is open, or else the newest full chunk. */
static void newest_only(void **state)
{
	for (uint32_t t = 0; t < 3; t++)
		for (uint32_t i = 0; i < 3; i++)
			go_on(t);
	chunk(open_chunk[0])->state = PB_CHUNK_FULL;
	assert_int_equal(take(true, records), 0);
	for (uint32_t t = 0; t < 3; t++)
		for (uint32_t seq = 0; seq < 5; seq++)
			assert_int_equal(records[t][seq], seq == 3);
}

/* The header of chunk 0 is on a page that can't be accessed. So each instruction of the snapshot
 * that accesses the page comes to on_access(), which lets this instruction run alone. */
static unsigned accesses, take_at;
static bool watching;
static enum { USED_AGAIN, GIVEN_BACK, FILLED, FILLED_BY_SAME, CASES } how_taken;

static void protect(int how)
{
	mprotect(chunk(0), 4096, how);
}

/* A thread takes chunk 0 over, and has written one record to it. If the recorder has freed the
 * chunk's memory before, the count of uses begins again. */
static void taken_over(void)
{
	struct pb_chunk *c = chunk(0);

	c->serial = how_taken == FILLED_BY_SAME ? 1 : 2;
	c->uses = how_taken == USED_AGAIN ? c->uses + 1 : 1;
	c->seq = 2;
	memset(c + 1, 0, PB_CHUNK_SIZE - sizeof(*c));
	*(uint64_t *)(c + 1) = RECORD;
	c->state = PB_CHUNK_OPEN;
}

/* The thread fills the chunk between the copy of its records and the next access to its header. */
static void fill_after_copy(size_t offset)
{
	static bool copied;
	uint64_t *data = (uint64_t *)(chunk(0) + 1);

	copied = accesses > take_at && (copied || offset >= sizeof(struct pb_chunk));
	if (!copied || offset >= sizeof(struct pb_chunk) || chunk(0)->state != PB_CHUNK_OPEN)
		return;
	for (unsigned i = 0; i < FULL_WORDS; i++)
		data[i] = RECORD;
	chunk(0)->state = PB_CHUNK_FULL;
}

static void on_access(int sig, siginfo_t *si, void *ctx)
{
	greg_t *flags = &((ucontext_t *)ctx)->uc_mcontext.gregs[REG_EFL];

	if (sig == SIGTRAP) {
		*flags &= ~0x100;
		if (watching)
			protect(PROT_NONE);
		return;
	}
	size_t offset = (uint64_t)si->si_addr - (uint64_t)chunk(0);

	if (offset >= 4096)
		abort();
	protect(PROT_READ | PROT_WRITE);
	*flags |= 0x100;
	if (++accesses == take_at)
		taken_over();
	if (how_taken >= FILLED)
		fill_after_copy(offset);
}

/* A chunk is FULL when the snapshot begins to copy it. Then another thread takes it over. If the
 * snapshot took the new chunk for a FULL one, it would lack the records that are written later. */
static void taken_over_meanwhile(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_access, .sa_flags = SA_SIGINFO }, old[2];

	sigaction(SIGSEGV, &sa, &old[0]);
	sigaction(SIGTRAP, &sa, &old[1]);
	for (unsigned n = 0; n < CASES * 39; n++) {
		if (n)
			assert_int_equal(begin(state), 0);
		take_at = n / CASES + 1;
		how_taken = n % CASES;
		chunk(0)->uses = 1;
		go_on(0);
		accesses = 0;
		watching = true;
		protect(PROT_NONE);
		take(false, records);
		watching = false;
		protect(PROT_READ | PROT_WRITE);
		assert_true(accesses > take_at);
		assert_int_equal(too_short, 0);
		if (n < CASES * 39 - 1)
			assert_int_equal(end(state), 0);
	}
	sigaction(SIGSEGV, &old[0], NULL);
	sigaction(SIGTRAP, &old[1], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_hidden_gap, begin, end),
		cmocka_unit_test_setup_teardown(overwritten, begin, end),
		cmocka_unit_test_setup_teardown(all_records, begin, end),
		cmocka_unit_test_setup_teardown(two_open, begin, end),
		cmocka_unit_test_setup_teardown(newest_only, begin, end),
		cmocka_unit_test_setup_teardown(taken_over_meanwhile, begin, end),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
