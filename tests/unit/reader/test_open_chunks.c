/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the copies of open chunks (reader/open_chunks.h), and records of the meta file. The test
 * plays the engine and the drain. It changes the ring only while the copying thread waits in its
 * callback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../test_dir.h"
#include "abi/record.h"
#include "reader/drain_priv.h"
#include "reader/open_chunks.h"

#define CHUNKS	8
#define SIZE	(PB_CHUNK_SIZE * (CHUNKS + 1ul))

static char path[64];
static struct pb_datadir datadir;
static struct pb_drain drain;
static struct pb_open_chunks copies;
static sem_t round_begun, round_over;
static _Atomic bool ending;

static bool each_round(void *arg, const struct pb_open_chunks *o)
{
	sem_post(&round_begun);
	if (!ending)
		sem_wait(&round_over);
	return true;
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
		.geometry = { .nr_threads = 8, .nr_chunks = CHUNKS, .nr_buffer = CHUNKS,
			      .threads_offset = 4096, .chunks_offset = PB_CHUNK_SIZE,
			      .size = SIZE },
		.datadir = &datadir,
	};
	copies = (struct pb_open_chunks){ .drain = &drain, .round = each_round };
	ending = false;
	sem_init(&round_begun, 0, 0);
	sem_init(&round_over, 0, 0);
	return pb_drain_init(&drain);
}

static int end(void **state)
{
	ending = true;
	sem_post(&round_over);
	pb_open_chunks_stop(&copies);
	pb_open_chunks_remove(&copies);
	pb_drain_fini(&drain);
	munmap(drain.ring, SIZE);
	close(drain.ring_fd);
	free(drain.discarded);
	pb_datadir_close(&datadir);
	return pb_datadir_remove(path);
}

static struct pb_chunk *chunk(uint32_t i)
{
	return (void *)((char *)drain.ring + drain.geometry.chunks_offset +
			i * (size_t)PB_CHUNK_SIZE);
}

/* Opens the chunk i, with one leaf of the thread `serial`. */
static void open_chunk(uint32_t i, uint32_t serial)
{
	struct pb_chunk *c = chunk(i);

	c->serial = serial;
	*(uint64_t *)(c + 1) = 1ull << PB_SITE_SHIFT | PB_TAG_LEAF;
	pb_drain_taken(&drain)[0] |= 1ull << i;
	__atomic_store_n(&c->state, PB_CHUNK_OPEN, __ATOMIC_RELEASE);
	pb_drain_look(&drain);
}

static void next_round(void)
{
	sem_post(&round_over);
	sem_wait(&round_begun);
}

static bool no_thread;
int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	return no_thread ? EAGAIN : __real_pthread_create(t, attr, fn, arg);
}

/* A start that fails keeps nothing. */
static void fails_to_start(void **state)
{
	no_thread = true;
	assert_int_equal(pb_open_chunks_start(&copies), -EAGAIN);
	assert_null(copies.slot_of);
	assert_int_equal(fcntl(copies.fd, F_GETFD), -1);
	no_thread = false;
	assert_int_equal(pb_datadir_file(&datadir, "open", PB_DATA_MAGIC_OPEN), copies.fd);
	close(copies.fd);
	/* the file exists */
	assert_int_equal(pb_open_chunks_start(&copies), -EEXIST);
	assert_null(copies.slot_of);
}

static const struct pb_open_chunk *copy_of(uint32_t serial)
{
	for (uint32_t i = 0; i < copies.nr_slots; i++)
		if (copies.slots[i].head.serial == serial)
			return &copies.slots[i];
	return NULL;
}

/* A reader may be in the middle of the copy of a chunk that has become full. So no other chunk gets
 * the place of the copy before the chunk is in the file. */
static void kept_until_written(void **state)
{
	const struct pb_open_chunk *first;

	open_chunk(0, 1);
	assert_int_equal(pb_open_chunks_start(&copies), 0);
	sem_wait(&round_begun);
	first = copy_of(1);
	assert_non_null(first);
	assert_false(first->full);
	__atomic_store_n(&chunk(0)->state, PB_CHUNK_FULL, __ATOMIC_RELEASE);
	open_chunk(1, 2);
	next_round();
	assert_non_null(copy_of(2));
	assert_ptr_equal(copy_of(1), first);
	assert_true(first->full);
	pb_drain_full(&drain);
	assert_int_equal(drain.bytes, sizeof(struct pb_data_header) + sizeof(struct pb_chunk) + 8);
	next_round();
	assert_null(copy_of(1));
	assert_false(copy_of(2)->full);
}

/* Of a record that can be written only in part, the meta file keeps nothing. */
static void meta_is_whole(void **state)
{
	off_t size = lseek(datadir.meta_fd, 0, SEEK_END);
	struct rlimit old, limit;
	char text[200] = "";

	memset(text, 'x', sizeof(text) - 1);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = (rlim_t)size + 100;
	setrlimit(RLIMIT_FSIZE, &limit);
	assert_true(pb_datadir_note(&datadir, text) < 0);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(lseek(datadir.meta_fd, 0, SEEK_END), size);
	assert_int_equal(pb_datadir_note(&datadir, text), 0);
	assert_int_equal(lseek(datadir.meta_fd, 0, SEEK_END),
			 size + (off_t)sizeof(struct pb_meta) + 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fails_to_start, begin, end),
		cmocka_unit_test_setup_teardown(meta_is_whole, begin, end),
		cmocka_unit_test_setup_teardown(kept_until_written, begin, end),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
