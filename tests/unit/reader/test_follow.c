/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests how a recording is followed (reader/follow.h) if a chunk comes late. The test writes the
 * chunks and plays the drain, so it decides in which round a chunk comes, and when a pass over the
 * ring ends. A chunk that the drain hasn't passed yet must be waited for. A chunk that never comes
 * must not hold up the thread's later chunks for ever. The same is true of an open chunk that
 * doesn't become full.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../test_descriptors.h"
#include "../test_dir.h"
#include "../recordings/gen_data.h"
#include "abi/datadir.h"
#include "reader/drain.h"
#include "reader/follow.h"
#include "reader/open_chunks.h"
#include "reader/site_names.h"

#define ROUNDS	40	/* more than the reader waits if the drain makes passes */
#define PER_CHUNK 5

static struct gen g;
static struct pb_drain drain;
static struct pb_open_chunk slot;
static struct pb_open_chunks chunks;
static struct pb_follow *f;

/* Makes a chunk of calls of the function `seq` + 1. */
static void fill(uint64_t seq)
{
	uint64_t start = GEN_START + 1000 * seq;

	gen_chunk(&g, 1, 100, seq, start);
	for (unsigned i = 0; i < PER_CHUNK; i++)
		gen_leaf(&g, (uint32_t)seq + 1, start + 10 * i + 1, start + 10 * i + 5);
}

static void write_chunk(uint64_t seq)
{
	struct stat st;

	fill(seq);
	gen_chunk_write(&g);
	assert_int_equal(fstat(g.chunks, &st), 0);
	drain.bytes = (uint64_t)st.st_size;
}

/* Writes a copy of the chunk with its first records to `open`. */
static void copy_chunk(uint64_t seq, uint32_t records)
{
	fill(seq);
	gen_chunk_copy(&g, records);
	slot = (struct pb_open_chunk){ .head = g.head, .latest = g.last, .last = g.last };
	chunks.slots = &slot;
	chunks.nr_slots = 1;
}

static void start(void)
{
	char err[5000], path[100];

	snprintf(path, sizeof(path), "%s/open", dir);
	unlink(path);
	memset(&drain, 0, sizeof(drain));
	chunks = (struct pb_open_chunks){ .drain = &drain };
	gen_begin(&g, dir, "function_graph", "x86-tsc");
	drain.bytes = sizeof(struct pb_data_header);
	/* the file must be there when the recording is opened */
	copy_chunk(0, 1);
	chunks.nr_slots = 0;
	f = pb_follow_open(dir, PB_DEMANGLE_NO, 0, err, sizeof(err));
	assert_non_null(f);
}

/* Makes a round up to the time `now`. All calls in the chunk `seq` are calls of one function.
 * Returns how many calls of this function the round has. */
static unsigned round_at(uint64_t now, uint64_t seq)
{
	struct pb_event ev;
	unsigned nr = 0;

	chunks.clock = now;
	assert_int_equal(pb_follow_update(f, &chunks, true), 0);
	while (pb_follow_next(f, &ev))
		nr += ev.kind == PB_EV_LEAF && ev.site == seq + 1;
	return nr;
}

static unsigned rounds(uint64_t seq)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < ROUNDS; i++)
		nr += round_at(GEN_START + 1000000, seq);
	return nr;
}

static void end(void)
{
	pb_follow_close(f);
	gen_close(&g);
}

static void test_late(void **state)
{
	start();
	write_chunk(0);
	write_chunk(2);
	assert_int_equal(rounds(0), PER_CHUNK);
	assert_int_equal(rounds(2), 0);
	/* the pass that has begun before the chunk was full */
	drain.passes = 1;
	assert_int_equal(rounds(2), 0);
	write_chunk(1);
	drain.passes = 2;
	assert_int_equal(round_at(GEN_START + 1000000, 1), PER_CHUNK);
	assert_int_equal(pb_stream_totals(pb_follow_stream(f))->chunks_missing, 0);
	end();
}

static void test_missing(void **state)
{
	start();
	write_chunk(0);
	write_chunk(2);
	assert_int_equal(rounds(0), PER_CHUNK);
	drain.passes = 2;
	assert_int_equal(rounds(2), PER_CHUNK);
	assert_int_equal(pb_stream_totals(pb_follow_stream(f))->chunks_missing, 1);
	end();
}

static void test_held(void **state)
{
	start();
	copy_chunk(0, 3);
	assert_int_equal(rounds(0), 3);
	write_chunk(1);
	assert_int_equal(rounds(1), 0);
	drain.passes = 1;
	assert_int_equal(rounds(1), 0);
	drain.passes = 2;
	assert_int_equal(rounds(1), PER_CHUNK);
	end();
}

/* Reads the late records. Returns how many calls of the function of the chunk `seq` are among
 * them. */
static unsigned late(uint64_t seq)
{
	struct pb_event ev;
	unsigned nr = 0;

	while (pb_follow_late_next(f, &ev))
		nr += ev.kind == PB_EV_LEAF && ev.site == seq + 1 && ev.flags & PB_EV_LATE;
	return nr;
}

/* The held chunk is complete only after the reader has left it. */
static void test_held_late(void **state)
{
	start();
	copy_chunk(0, 3);
	write_chunk(1);
	drain.passes = 2;
	assert_int_equal(rounds(0), 3);
	drain.passes = 4;
	assert_int_equal(rounds(1), PER_CHUNK);
	chunks.nr_slots = 0;
	write_chunk(0);
	assert_int_equal(round_at(GEN_START + 1000000, 0), 0);
	assert_int_equal(late(0), PER_CHUNK - 3);
	write_chunk(2);
	assert_int_equal(round_at(GEN_START + 1000000, 2), PER_CHUNK);
	assert_int_equal(late(0), 0);
	end();
}

/* The reader gives up waiting before the horizon lets it read the open chunk. */
static void test_held_unread(void **state)
{
	start();
	copy_chunk(0, 3);
	for (unsigned i = 0; i < ROUNDS; i++) {
		drain.passes++;
		if (i == ROUNDS / 2)
			write_chunk(1);
		assert_int_equal(round_at(GEN_START, 0), 0);
	}
	assert_int_equal(round_at(GEN_START + 1000000, 0), 3);
	write_chunk(2);
	assert_int_equal(rounds(2), PER_CHUNK);
	end();
}

static int update(void)
{
	return pb_follow_update(f, &chunks, true);
}

/* For some time there is no free descriptor. The rounds of this time are skipped, and the next
 * round reads all records. If this goes on, it is an error. */
static void test_no_descriptor(void **state)
{
	start();
	for (uint32_t n = 0; n < 3; n++) {
		gen_image(&g, n + 1, 100, "/bin/program");
		write_chunk(n);
		set_descriptors(false);
		for (unsigned i = 0; i < 70; i++)
			assert_int_equal(update(), PB_FOLLOW_SKIPPED);
		for (unsigned i = 0; n == 2 && i < 30; i++)
			assert_int_equal(update(), PB_FOLLOW_SKIPPED);
		if (n == 2)
			assert_int_equal(update(), -EMFILE);
		set_descriptors(true);
		if (n < 2)
			assert_int_equal(round_at(GEN_START + 1000000, n), PER_CHUNK);
	}
	end();
}

static void name_is(const char *name)
{
	struct pb_data *d = pb_follow_data(f);

	assert_string_equal(pb_symbols_site(d->symbols, pb_data_image(d, 1), 1).name, name);
}

/* There is no free descriptor when a module is needed. It is loaded in the next round. */
static void test_module_later(void **state)
{
	static const char *const names[] = { "one", "two" };

	start();
	gen_image(&g, 1, 100, "/bin/program");
	gen_module(&g, 1, 1, 100, 1, 0x400000, names, 2);
	assert_int_equal(update(), 0);
	set_descriptors(false);
	name_is("site:1");
	set_descriptors(true);
	name_is("site:1");
	assert_int_equal(update(), 0);
	assert_true(pb_follow_modules(f));
	name_is("one");
	assert_int_equal(pb_follow_data(f)->nr_notes, 0);
	assert_int_equal(update(), 0);
	assert_false(pb_follow_modules(f));
	end();
}

/* The recorder was killed, so there are no later rounds that could load the module. A note says
 * that its functions have no names. */
static void test_no_names(void **state)
{
	static const char *const names[] = { "one" };
	struct pb_data *d;
	char err[5000];

	start();
	gen_image(&g, 1, 100, "/bin/program");
	gen_module(&g, 1, 1, 100, 1, 0x400000, names, 1);
	end();
	d = pb_data_open(dir, 0, err, sizeof(err));
	assert_non_null(d);
	set_descriptors(false);
	assert_string_equal(pb_symbols_site(d->symbols, pb_data_image(d, 1), 1).name, "site:1");
	set_descriptors(true);
	assert_true(d->nr_notes > 0);
	assert_string_equal(d->notes[d->nr_notes - 1],
			    "modules/1: Too many open files: its functions have no names");
	pb_data_close(d);
}

/* A recording is opened when there are too few free descriptors. */
static void test_open(void **state)
{
	struct rlimit all;
	char err[5000];

	start();
	end();
	for (unsigned nr = 0; nr < 4; nr++) {
		leave_descriptors(&all, nr);
		errno = 0;
		f = pb_follow_open(dir, PB_DEMANGLE_NO, 0, err, sizeof(err));
		assert_int_equal(errno, EMFILE);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
		assert_null(f);
		assert_non_null(strstr(err, "Too many open files"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late), cmocka_unit_test(test_missing),
		cmocka_unit_test(test_held), cmocka_unit_test(test_held_late),
		cmocka_unit_test(test_held_unread), cmocka_unit_test(test_no_descriptor),
		cmocka_unit_test(test_module_later), cmocka_unit_test(test_no_names),
		cmocka_unit_test(test_open),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
