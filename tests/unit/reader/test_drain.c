/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the recorder's side of the ring (src/reader/drain*.c), also with writers that break the
 * ring's rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../test_dir.h"
#include "abi/record.h"
#include "base/base.h"
#include "reader/data.h"
#include "reader/drain_priv.h"

#define CHUNKS	200		/* so many chunks that they take several writes */
#define RESERVE	100
#define SIZE	(PB_CHUNK_SIZE * (CHUNKS + RESERVE + 1ul))

static char path[64];
static struct pb_datadir datadir;
static struct pb_drain drain;

static struct pb_chunk *chunk(uint32_t i)
{
	return pb_drain_chunk(&drain, i);
}

static void set_taken(uint32_t i)
{
	pb_drain_taken(&drain)[i / 64] |= 1ull << i % 64;
}

/* Fills chunk i with one leaf of the thread `serial`, and sets the chunk's `used`. */
static void fill(uint32_t i, uint32_t serial, uint32_t used)
{
	struct pb_chunk *c = chunk(i);

	c->serial = serial;
	c->seq = i;
	c->used = used;
	*(uint64_t *)(c + 1) = 1ull << PB_SITE_SHIFT | PB_TAG_LEAF;
	set_taken(i);
	__atomic_store_n(&c->state, PB_CHUNK_FULL, __ATOMIC_RELEASE);
}

static int begin(void **state)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);
	char err[5000];

	snprintf(path, sizeof(path), "%s/data", dir);
	if (fd < 0 || ftruncate(fd, SIZE) || pb_datadir_open(&datadir, path, err, sizeof(err)))
		return -1;
	drain = (struct pb_drain){
		.ring = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), .ring_fd = fd,
		.geometry = { .nr_threads = 8, .nr_chunks = CHUNKS + RESERVE, .nr_buffer = CHUNKS,
			      .threads_offset = 4096, .chunks_offset = PB_CHUNK_SIZE,
			      .size = SIZE },
		.datadir = &datadir,
	};
	return pb_drain_init(&drain);
}

static int end(void **state)
{
	munmap(drain.ring, SIZE);
	close(drain.ring_fd);
	free(drain.discarded);
	pb_datadir_close(&datadir);
	return pb_datadir_remove(path);
}

/* Returns the number of chunks that a reader finds in the file. The file must not be cut off. */
static size_t chunks_read(void)
{
	char err[5000];
	struct pb_data *d;
	size_t nr;

	pb_datadir_close(&datadir);
	d = pb_data_open(path, 0, err, sizeof(err));
	assert_non_null(d);
	for (size_t i = 0; i < d->nr_notes; i++)
		assert_null(strstr(d->notes[i], "cut off"));
	nr = d->nr_chunks;
	pb_data_close(d);
	return nr;
}

/* The recorder doesn't write a chunk that names no thread, because a reader would stop there. */
static void without_a_thread(void **state)
{
	fill(0, 1, 8);
	fill(1, 0, 8);
	fill(2, 2, 8);
	assert_int_equal(pb_drain_full(&drain), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(chunk(i)->state, PB_CHUNK_FREE);
	assert_int_equal(drain.counts.records, 2);
	assert_int_equal(drain.discarded_calls, 1);
	pb_drain_fini(&drain);
	assert_int_equal(chunks_read(), 2);
}

/* A thread may lose more than 2^32 calls. The calls of a thread without a row count, too. */
static void many_discarded(void **state)
{
	drain.full = true;
	drain.discarded[0] = drain.discarded_calls = UINT32_MAX;
	fill(0, 1, 8);
	fill(1, drain.geometry.nr_threads + 1, 8);
	assert_int_equal(pb_drain_full(&drain), 2);
	assert_true(drain.discarded[0] == 1ull << 32 && drain.discarded_calls == (1ull << 32) + 1);
	pb_drain_fini(&drain);
}

/* The recorder doesn't rely on a chunk's `used`. It finds the end of the data itself. */
static void used_is_not_believed(void **state)
{
	fill(0, 1, UINT32_MAX);
	fill(1, 1, PB_CHUNK_SIZE - PB_CHUNK_HEADER + 8);
	fill(2, 99, 13);		/* no thread has serial 99; 13 bytes end within a word */
	assert_int_equal(pb_drain_full(&drain), 3);
	pb_drain_fini(&drain);
	assert_int_equal(datadir.chunks_size,
			 sizeof(struct pb_data_header) + 3 * (sizeof(struct pb_chunk) + 8));
	assert_int_equal(chunks_read(), 3);
}

/* If `writes` isn't 0, the program fills all free chunks before each write to the file. `writes` is
 * the number of writes that may follow. */
static unsigned writes;
int __real_pb_datadir_chunks(struct pb_datadir *w, const struct iovec *iov, int nr, uint64_t bytes);
int __wrap_pb_datadir_chunks(struct pb_datadir *w, const struct iovec *iov, int nr, uint64_t bytes);
int __wrap_pb_datadir_chunks(struct pb_datadir *w, const struct iovec *iov, int nr, uint64_t bytes)
{
	for (uint32_t i = 0; writes && i < CHUNKS; i++)
		if (chunk(i)->state == PB_CHUNK_FREE)
			fill(i, 1, 8);
	if (writes && !--writes)
		fail_msg("the session doesn't end");
	return __real_pb_datadir_chunks(w, iov, nr, bytes);
}

/* Even a writer that is as fast as the recorder can't keep the session open. */
static void ends_under_fire(void **state)
{
	for (uint32_t i = 0; i < CHUNKS; i++)
		fill(i, 1, 8);
	writes = 1000;
	pb_drain_rest(&drain);
	writes = 0;
	pb_drain_fini(&drain);
	/* each chunk was full at first, and was filled once more */
	assert_int_equal(drain.counts.records, 2 * CHUNKS);
}

/* Fills chunk i with one leaf that ends at `end`. */
static void fill_at(uint32_t i, uint32_t state, uint32_t serial, uint64_t seq, uint64_t start,
		    uint64_t end)
{
	struct pb_chunk *c = chunk(i);

	fill(i, serial, 8);
	c->seq = seq;
	c->start = start;
	*(uint64_t *)(c + 1) |= end << PB_LEAF_SHIFT;
	c->used = state == PB_CHUNK_OPEN ? 0 : c->used;
	c->state = state;
}

/* Prints the serial and seq of each chunk in the file to `out`, in the reader's order. */
static void written(char *out)
{
	char err[5000];
	struct pb_data *d;

	pb_datadir_close(&datadir);
	d = pb_data_open(path, 0, err, sizeof(err));
	assert_non_null(d);
	for (size_t i = 0; i < d->nr_chunks; i++)
		out += sprintf(out, "%u.%u ", d->chunks[i].serial, (unsigned)d->chunks[i].seq);
	pb_data_close(d);
}

/* If the file has no room for all chunks, the chunks with the newest records stay. Thread 1 opened
 * its last chunk early, and wrote to it at the end. Thread 2 ended early. Thread 3 wrote all the
 * time. */
static void newest_remain(void **state)
{
	static const struct { unsigned room; const char *left; uint64_t overwritten; } cases[] = {
		{ 0, "1.7 1.8 2.0 3.4 3.5 3.6 ", 0 }, { 6, "1.7 1.8 2.0 3.4 3.5 3.6 ", 0 },
		{ 4, "1.8 3.4 3.5 3.6 ", 2 }, { 2, "1.8 3.6 ", 4 }, { 1, "1.8 ", 5 },
	};
	char got[200];

	for (size_t i = 0; i < pb_array_size(cases); i++) {
		if (i)
			assert_int_equal(begin(state), 0);
		drain.geometry.mode = PB_RING_OVERWRITE;
		drain.max_size = cases[i].room * (sizeof(struct pb_chunk) + 8ul);
		drain.max_size += drain.max_size ? datadir.chunks_size : 0;
		fill_at(0, PB_CHUNK_FULL, 3, 5, 3000, 3500);
		fill_at(1, PB_CHUNK_OPEN, 1, 8, 2000, 9000);
		fill_at(2, PB_CHUNK_FULL, 2, 0, 1000, 1200);
		fill_at(3, PB_CHUNK_FULL, 3, 6, 4000, 8000);
		fill_at(4, PB_CHUNK_FULL, 3, 4, 2500, 2600);
		fill_at(5, PB_CHUNK_FULL, 1, 7, 1500, 1600);
		pb_drain_rest(&drain);
		assert_int_equal(drain.overwritten_calls, cases[i].overwritten);
		assert_int_equal(drain.discarded_calls, 0);
		pb_drain_fini(&drain);
		*got = 0;
		written(got);
		assert_string_equal(got, cases[i].left);
		if (i + 1 < pb_array_size(cases))
			assert_int_equal(end(state), 0);
	}
}

/* Drains a chunk of thread 1 with these words, and ends the session. */
static void drain_words(uint64_t seq, uint32_t depth, const uint64_t *words, uint32_t size)
{
	struct pb_chunk *c = chunk(0);

	fill(0, 1, size);
	c->seq = seq;
	c->start = 5000;
	c->depth = depth;
	memcpy(c + 1, words, size);
	pb_drain_rest(&drain);
	pb_drain_fini(&drain);
}

/* The oldest chunk lists two open calls. The ENTRY of the first call was overwritten, and the ENTRY
 * of the second call follows in the chunk. Both calls end. A third call has no end. */
static void listed_calls(void **state)
{
	uint64_t entry = 2ull << PB_SITE_SHIFT | 4800ull << PB_TIME_SHIFT | PB_TAG_ENTRY;
	const uint64_t words[] = {
		pb_ext_record(OPEN, 1, 0), 4000,
		pb_ext_record(OPEN, 2, 0), 4800,
		1ull << PB_SITE_SHIFT | 5100ull << PB_TIME_SHIFT | PB_TAG_LEAF,
		entry,
		2ull << PB_SITE_SHIFT | 5200ull << PB_TIME_SHIFT | PB_TAG_EXIT,
		1ull << PB_SITE_SHIFT | 5300ull << PB_TIME_SHIFT | PB_TAG_EXIT,
		3ull << PB_SITE_SHIFT | 5400ull << PB_TIME_SHIFT | PB_TAG_ENTRY,
	};

	drain.geometry.mode = PB_RING_OVERWRITE;
	drain_words(5, 2, words, sizeof(words));
	assert_int_equal(pb_counts_calls(&drain.counts, false), 4);
}

static void born(uint64_t start)
{
	struct pb_ring_thread *t = (void *)((char *)drain.ring + drain.geometry.threads_offset);

	*t = (struct pb_ring_thread){ .serial = 1, .start = start };
}

/* A forked process whose first chunks were overwritten. If a listed call began before the process
 * began, the call is counted in the parent process. */
static void listed_in_child(void **state)
{
	const uint64_t words[] = {
		pb_ext_word(PB_EXT_OPEN, PB_EXT_OPEN_WORDS, 1, 0), 500,
		pb_ext_word(PB_EXT_OPEN, PB_EXT_OPEN_WORDS, 2, 0), 4100,
		3ull << PB_SITE_SHIFT | 5100ull << PB_LEAF_SHIFT | PB_TAG_LEAF,
	};

	drain.geometry.mode = PB_RING_OVERWRITE;
	born(4000);
	drain_words(5, 2, words, sizeof(words));
	assert_int_equal(pb_counts_calls(&drain.counts, false), 2);
}

/* A handler interrupted the process's first call before the call's ENTRY was written. A
 * traced call of the handler opened the first chunk, so the chunk lists the interrupted call, which
 * was open. This call began after the process began, so it is counted in this process, not in the
 * parent process. */
static void listed_first(void **state)
{
	const uint64_t words[] = {
		pb_ext_word(PB_EXT_OPEN, PB_EXT_OPEN_WORDS, 1, 0), 4800,
		2ull << PB_SITE_SHIFT | 5100ull << PB_LEAF_SHIFT | PB_TAG_LEAF,
		1ull << PB_SITE_SHIFT | 4800ull << PB_TIME_SHIFT | PB_TAG_ENTRY,
		1ull << PB_SITE_SHIFT | 5300ull << PB_TIME_SHIFT | PB_TAG_EXIT,
	};

	born(4700);
	drain_words(0, 1, words, sizeof(words));
	assert_int_equal(pb_counts_calls(&drain.counts, true), 2);
}

/* Idle threads hold chunks. Until the reserve is used up, CHUNKS chunks remain usable besides the
 * chunks that are held. */
static void idle_threads(void **state)
{
	struct pb_ring *ring = drain.ring;

	for (uint32_t i = 0; i < CHUNKS + RESERVE; i++) {
		chunk(i)->state = i % 2 ? PB_CHUNK_OPEN : PB_CHUNK_HELD;
		set_taken(i);
		ring->next_serial = i + 1;
		pb_drain_serials(&drain);
		pb_drain_serials(&drain);
		assert_int_equal(pb_drain_full(&drain), 0);
		assert_int_equal(pb_ring_usable(ring, CHUNKS + RESERVE),
				 i + 1 < RESERVE ? CHUNKS + i + 1 : CHUNKS + RESERVE);
	}
	/* these threads end */
	for (uint32_t i = 0; i < CHUNKS + RESERVE; i++)
		chunk(i)->state = PB_CHUNK_FREE;
	pb_drain_count(&drain);
	/* The recorder sees five new threads, but they may have no chunk yet. After that, two more
	 * threads begin, which the recorder hasn't seen */
	ring->next_serial += 5;
	pb_drain_serials(&drain);
	pb_drain_count(&drain);
	ring->next_serial += 2;
	assert_int_equal(pb_ring_usable(ring, CHUNKS + RESERVE), CHUNKS + 7);
	assert_int_equal(pb_ring_usable(ring, CHUNKS), CHUNKS);
	pb_drain_fini(&drain);
}

/* A chunk's `taken` bit is set, but the chunk is FREE: the agent set the bit, and was stopped
 * before it took the chunk. */
static void stopped_before_open(void **state)
{
	fill(130, 1, 8);	/* chunk 130 is the last chunk that was used */
	set_taken(70);
	drain.ring->free_word = 3;
	assert_int_equal(pb_drain_full(&drain), 1);
	assert_false(pb_drain_is_taken(&drain, 70));
	assert_false(pb_drain_is_taken(&drain, 130));
	assert_int_equal(chunk(70)->state, PB_CHUNK_FREE);
	assert_int_equal(drain.ring->free_word, 1);
	pb_drain_fini(&drain);
}

static size_t memory(void)
{
	struct stat st;

	assert_int_equal(fstat(drain.ring_fd, &st), 0);
	return (size_t)st.st_blocks * 512;
}

/* The memory of the reserve is freed when the threads that used the reserve have ended. A chunk
 * that is in use keeps its memory. */
static void given_back(void **state)
{
	size_t before;

	pb_drain_count(&drain);
	before = memory();
	for (uint32_t i = CHUNKS; i < CHUNKS + RESERVE; i++) {
		memset(chunk(i), 1, PB_CHUNK_SIZE);
		chunk(i)->state = i == CHUNKS + 50 ? PB_CHUNK_OPEN : PB_CHUNK_FREE;
	}
	set_taken(CHUNKS + 50);
	pb_drain_look(&drain);
	pb_drain_trim(&drain);
	assert_in_range(memory(), before, before + PB_CHUNK_SIZE + 4096);
	assert_int_equal(chunk(CHUNKS + 50)->state, PB_CHUNK_OPEN);
	assert_int_equal(chunk(CHUNKS + 49)->state, PB_CHUNK_FREE);
	assert_int_equal(chunk(CHUNKS + 51)->uses, 0);
	pb_drain_fini(&drain);
}

/* Overwrite mode: a burst of threads has left FULL chunks in the reserve. They are freed when all
 * chunks that writers may take over are newer. A slow thread began chunk CHUNKS + 50 as early as
 * the burst, but its last record is new. Without a clock, no chunk is older than another. */
static void old_chunks_are_given_back(void **state)
{
	drain.geometry.mode = PB_RING_OVERWRITE;
	for (uint64_t start = 0; start <= 5000; start += start ? 4500 : 500) {
		for (uint32_t i = 0; i < CHUNKS + RESERVE; i++) {
			uint64_t at = !start ? 0 : i < CHUNKS ? start + i : 1000;

			fill_at(i, PB_CHUNK_FULL, i < CHUNKS ? 1 : 2, i, at, at);
		}
		if (start)
			fill_at(CHUNKS + 50, PB_CHUNK_FULL, 3, 0, 1000, 9000);
		pb_drain_count(&drain);
		pb_drain_trim(&drain);
		for (uint32_t i = 0; i < CHUNKS + RESERVE; i++)
			assert_int_equal(pb_drain_is_taken(&drain, i),
					 start < 5000 || i < CHUNKS || i == CHUNKS + 50);
	}
	assert_int_equal(drain.ring->chunks_overwritten, RESERVE - 1);
	assert_int_equal(chunk(CHUNKS + 49)->state, PB_CHUNK_FREE);
	assert_int_equal(chunk(CHUNKS + 50)->state, PB_CHUNK_FULL);
	assert_in_range(memory(), 0, (CHUNKS + 1 + 16) * 4096);
	pb_drain_fini(&drain);
}

/* pb_drain_ahead() gives memory to the whole buffer before writers need it, and to no more. */
static void ahead(void **state)
{
	drain.geometry.nr_buffer = CHUNKS - 3;
	while (pb_drain_ahead(&drain))
		;
	assert_in_range(memory(), (CHUNKS - 3) * (size_t)PB_CHUNK_SIZE,
			(CHUNKS - 3) * (size_t)PB_CHUNK_SIZE + 3 * 4096);
	pb_drain_fini(&drain);
}

#define NO_SUCH	0x7ffffff0		/* larger than any pid */

/* Makes chunk i OPEN, as a chunk of the thread `serial` with the ids pid and tid. */
static void hold(uint32_t i, uint32_t serial, uint32_t pid, uint32_t tid)
{
	struct pb_chunk *c = chunk(i);
	struct pb_ring_thread *t = (void *)((char *)drain.ring + drain.geometry.threads_offset);

	t[serial - 1] = (struct pb_ring_thread){ .serial = serial, .pid = pid, .tid = tid };
	fill(i, serial, 0);
	c->pid = c->tid = NO_SUCH;	/* left by the thread that had the chunk before */
	__atomic_store_n(&c->state, PB_CHUNK_OPEN, __ATOMIC_RELEASE);
}

static unsigned asked;
static bool found, unknown;

static bool answer(void *arg, struct pb_drain_thread *threads, unsigned nr,
		   const _Atomic bool *stop)
{
	for (unsigned i = 0; i < nr; i++) {
		asked++;
		assert_true(threads[i].seen);
		threads[i].alive = found;
	}
	return !unknown;
}

static void look(unsigned times, bool all)
{
	for (unsigned i = 0; i < times; i++) {
		pb_drain_dead_look(&drain, all);
		pb_drain_dead_take(&drain);
	}
}

static void begin_dead(void)
{
	asked = found = unknown = false;
	drain.threads_alive = answer;
	drain.high = 1;
	hold(0, 1, NO_SUCH, NO_SUCH + 1);
}

/* In the recorder's pid namespace no process has the thread's pid, but the search of all pid
 * namespaces finds that the thread lives. While the thread lives, its chunk isn't taken. */
static void misleading_number(void **state)
{
	begin_dead();
	found = true;
	look(100, false);
	assert_int_equal(chunk(0)->state, PB_CHUNK_OPEN);
	assert_int_equal(asked, 1);		/* later looks search only if `all` is set */
	look(2, true);
	assert_int_equal(asked, 3);
	assert_int_equal(chunk(0)->state, PB_CHUNK_OPEN);
	/* the thread dies */
	found = false;
	look(1, true);
	assert_int_equal(chunk(0)->state, PB_CHUNK_OPEN);
	look(1, true);
	assert_int_equal(chunk(0)->state, PB_CHUNK_FREE);
	assert_int_equal(drain.counts.records, 1);
	pb_drain_fini(&drain);
}

/* A failed search doesn't prove that the thread is dead. */
static void nothing_known(void **state)
{
	begin_dead();
	unknown = true;
	look(20, true);
	assert_int_equal(chunk(0)->state, PB_CHUNK_OPEN);
	pb_drain_fini(&drain);
}

/* An agent that doesn't know its pid or tid writes 0. The thread's chunk isn't taken. */
static void no_number(void **state)
{
	begin_dead();
	hold(0, 1, 0, NO_SUCH);
	look(20, true);
	hold(0, 2, NO_SUCH, 0);
	look(20, true);
	assert_int_equal(asked, 0);
	assert_int_equal(chunk(0)->state, PB_CHUNK_OPEN);
	pb_drain_fini(&drain);
}

/* Another thread may have got the ids of a dead thread. The dead thread's chunk is taken
 * nevertheless. */
static void number_of_another(void **state)
{
	begin_dead();
	hold(0, 1, (uint32_t)getpid(), (uint32_t)getpid());
	look(20, false);
	assert_int_equal(asked, 0);
	assert_int_equal(chunk(0)->state, PB_CHUNK_OPEN);
	look(2, true);
	assert_int_equal(chunk(0)->state, PB_CHUNK_FREE);
	pb_drain_fini(&drain);
}

/* The dead thread had taken the chunk, but hadn't opened it. */
static void taken_chunk(void **state)
{
	begin_dead();
	chunk(0)->state = PB_CHUNK_TAKEN;
	look(2, false);
	assert_int_equal(chunk(0)->state, PB_CHUNK_FREE);
	assert_int_equal(drain.counts.records, 0);
	/* a serial that is larger than the table belongs to no known thread */
	hold(0, 1, 0, 0);
	chunk(0)->serial = 99;
	chunk(0)->state = PB_CHUNK_TAKEN;
	look(20, true);
	assert_int_equal(chunk(0)->state, PB_CHUNK_TAKEN);
	pb_drain_fini(&drain);
}

/* Between pb_drain_dead_look() and pb_drain_dead_take(), another thread gets the chunk. */
static void other_owner(void **state)
{
	begin_dead();
	pb_drain_dead_look(&drain, false);
	pb_drain_dead_look(&drain, false);
	hold(0, 2, NO_SUCH, NO_SUCH + 1);
	pb_drain_dead_take(&drain);
	assert_int_equal(chunk(0)->state, PB_CHUNK_OPEN);
	pb_drain_dead_look(&drain, false);
	pb_drain_dead_take(&drain);
	assert_int_equal(chunk(0)->state, PB_CHUNK_OPEN);
	look(1, false);
	assert_int_equal(chunk(0)->state, PB_CHUNK_FREE);
	pb_drain_fini(&drain);
}

/* The number of threads that are still made before pthread_create() fails. -1: it never fails. */
static int threads_left = -1;

int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	if (!threads_left)
		return EAGAIN;
	threads_left -= threads_left > 0;
	return __real_pthread_create(t, attr, fn, arg);
}

/* A start that fails frees all that it has allocated, whichever thread can't be made. */
static void fails_to_start(void **state)
{
	pb_drain_fini(&drain);
	free(drain.discarded);
	drain.followed = true;
	for (int threads = 0; threads < 3; threads++) {
		threads_left = threads;
		assert_int_equal(pb_drain_start(&drain), -EAGAIN);
		threads_left = -1;
		assert_true(!drain.batch && !drain.lasts && !drain.heads && !drain.dead &&
			    !drain.discarded);
		drain.stop = false;
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fails_to_start), TEST(without_a_thread), TEST(many_discarded),
		TEST(used_is_not_believed), TEST(ends_under_fire), TEST(newest_remain),
		TEST(listed_calls), TEST(listed_in_child), TEST(listed_first), TEST(idle_threads),
		TEST(stopped_before_open), TEST(given_back), TEST(old_chunks_are_given_back),
		TEST(ahead), TEST(misleading_number), TEST(nothing_known), TEST(no_number),
		TEST(number_of_another), TEST(taken_chunk), TEST(other_owner),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
