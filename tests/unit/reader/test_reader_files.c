/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests what the reader makes of the files of a directory, apart from the records of calls: large
 * and broken files, notes, losses, readings of the clocks, addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../recordings/gen_data.h"
#include "../test_dir.h"
#include "reader/counts.h"
#include "reader/site_names.h"
#include "reader/stream.h"

#define SECOND 1000000000ull

static struct gen g;

static struct pb_data *open_data(void)
{
	char err[5000];
	struct pb_data *d = pb_data_open(dir, 0, err, sizeof(err));

	assert_non_null(d);
	return d;
}

static bool has_note(const struct pb_data *d, const char *part)
{
	for (size_t i = 0; i < d->nr_notes; i++)
		if (strstr(d->notes[i], part))
			return true;
	return false;
}

/* Reads all events. Returns the time of the last event. */
static uint64_t read_all(struct pb_data *d, struct pb_stream_totals *totals)
{
	struct pb_stream s;
	struct pb_event ev;
	uint64_t time = 0;

	assert_int_equal(pb_stream_open(&s, d, true, NULL, 0), 0);
	while (pb_stream_next(&s, &ev))
		time = ev.time;
	*totals = *pb_stream_totals(&s);
	pb_stream_close(&s);
	return time;
}

/* With 2 ticks per ns, three readings: the machine slept for an hour between the second and the
 * third. It was awake for 10 s before the second reading, and for `awake` ns after it. */
static void sleeps(struct pb_clock *c, const char *name, uint64_t awake)
{
	struct pb_meta_clock p[4] = { { SECOND, SECOND, 2 * SECOND, 3 * SECOND, 4 * SECOND } };

	for (int i = 1; i < 4; i++) {
		uint64_t ns = i == 2 ? awake : 10 * SECOND;
		uint64_t sleep = i == 2 ? 3600 * SECOND : 0;

		p[i] = (struct pb_meta_clock){
			.tsc = p[i - 1].tsc + 2 * (ns + sleep),
			.monotonic = p[i - 1].monotonic + ns,
			.monotonic_raw = p[i - 1].monotonic_raw + ns,
			.boottime = p[i - 1].boottime + ns + sleep,
			.realtime = p[i - 1].realtime + ns + sleep,
		};
	}
	assert_int_equal(pb_clock_init(c, name, p, 4), 0);
}

/* The rate of a clock that stops while the machine sleeps isn't changed by a sleep. */
static void test_sleep(void **state)
{
	const uint64_t second = SECOND + 20 * SECOND, third = second + 2 * 3610 * SECOND;
	struct pb_clock c;
	uint64_t last = 0;

	sleeps(&c, "mono", 10 * SECOND);
	assert_int_equal(pb_clock_span(&c, 2 * SECOND), SECOND);
	assert_int_equal(c.khz, 2000000);
	assert_int_equal(c.off_ns, 0);
	assert_int_equal(c.span_ns, 30 * SECOND);
	/* in the interval, the first and the last 5 s are right */
	assert_int_equal(pb_clock_ns(&c, second + 2 * 4 * SECOND), 15 * SECOND);
	assert_int_equal(pb_clock_ns(&c, second + 2 * 1000 * SECOND), 16 * SECOND);
	assert_int_equal(pb_clock_ns(&c, third - 2 * 4 * SECOND), 17 * SECOND);
	assert_int_equal(pb_clock_ns(&c, third), 21 * SECOND);
	for (uint64_t tsc = 0; tsc < third + 100 * SECOND; tsc += SECOND / 3) {
		uint64_t ns = pb_clock_ns(&c, tsc);

		assert_true(ns >= last);
		last = ns;
	}
	assert_int_equal(pb_clock_ns(&c, pb_clock_ticks(&c, 17 * SECOND)), 17 * SECOND);
	/* the sums of durations have no part of the sleep */
	for (uint64_t start = 0; start < third; start += 131 * SECOND / 7) {
		for (uint64_t end = start; end < third + 100 * SECOND; end += 97 * SECOND / 3) {
			uint64_t ticks = pb_clock_ticks_between(&c, start, end);
			uint64_t ns = pb_clock_ns(&c, end) - pb_clock_ns(&c, start);

			assert_in_range(pb_clock_span(&c, ticks) + 1 - ns, 0, 2);
		}
	}
	pb_clock_free(&c);

	sleeps(&c, "x86-tsc", 0);	/* no time passed, so the third reading can't be used */
	assert_int_equal(c.readings, 3);
	pb_clock_free(&c);

	sleeps(&c, "boot", 10 * SECOND);	/* this clock counts the sleep */
	assert_int_equal(pb_clock_span(&c, 2 * SECOND), SECOND);
	assert_int_equal(pb_clock_ns(&c, second + 2 * 1000 * SECOND), 1013 * SECOND);
	pb_clock_free(&c);
}

/* Chunks that the recorder can't read again for its counts leave no memory behind. */
static void test_counts_unreadable(void **state)
{
	struct pb_counts_thread thread = { .nr = 2, .last.seq = 1 };
	struct pb_counts counts = { 0 };
	size_t before = 0;

	thread.first.used = thread.last.used = 64;
	for (int i = 0; i < 20; i++) {
		pb_counts_finish(&counts, &thread, 1, -1);
		before = i ? before : mallinfo2().uordblks;
	}
	assert_int_equal(mallinfo2().uordblks, before);
	assert_int_equal(counts.opened, 0);
}

/* A recording of many program images has a large file `meta`. */
static void test_large_meta(void **state)
{
	const size_t nr = 70 << 10;
	struct pb_data *d;
	char path[1000];

	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = 0;
	gen_begin(&g, dir, "function_graph", "x86-tsc");
	for (uint32_t i = 1; i <= nr; i++)
		gen_image(&g, i, 100 + i, path);
	gen_thread(&g, 1, 100, 100, "last", 7, 0);
	gen_end(&g, GEN_START + 2 * SECOND);
	d = open_data();
	assert_int_equal(d->nr_images, nr + 1);
	assert_int_equal(d->nr_threads, 1);
	assert_true(d->ended);
	assert_false(d->damaged);
	assert_int_equal(d->nr_notes, 0);
	pb_data_close(d);
}

static void write_chunk(void)
{
	gen_chunk(&g, 1, 100, 0, GEN_START);
	for (int i = 0; i < 1000; i++)
		gen_leaf(&g, 1, GEN_START + 100 + 10 * i, GEN_START + 105 + 10 * i);
	gen_chunk_write(&g);
}

static void truncate_chunks(off_t by)
{
	char path[100];
	off_t size;
	int fd;

	snprintf(path, sizeof(path), "%s/chunks", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	size = lseek(fd, 0, SEEK_END);
	assert_int_equal(ftruncate(fd, size - by), 0);
	close(fd);
}

/* Of the recorder's notes, the newest are kept, each once. They leave room for those of the
 * reader. */
static void test_notes(void **state)
{
	struct pb_data *d;
	char text[32];

	gen_begin(&g, dir, "function_graph", "x86-tsc");
	for (int i = 0; i < 80; i++) {
		snprintf(text, sizeof(text), "note %d.", i);
		for (int times = 0; times < 3; times++)
			gen_meta(&g, PB_META_NOTE, "", 0, text);
	}
	write_chunk();
	gen_end(&g, GEN_START + 2 * SECOND);
	truncate_chunks(100);
	d = open_data();
	assert_int_equal(d->nr_notes, 1 + 64 + 1);
	assert_string_equal(d->notes[0], "left out: 16 earlier notes of the recorder");
	assert_false(has_note(d, "note 15."));
	assert_string_equal(d->notes[1], "note 16.");
	assert_string_equal(d->notes[64], "note 79.");
	assert_true(has_note(d, "`chunks' is cut off"));
	assert_true(d->damaged);
	pb_data_close(d);
}

/* A chunk becomes unreadable after the directory was opened. */
static void test_unreadable(void **state)
{
	struct pb_stream_totals totals;
	struct pb_data *d;

	for (int header = 0; header < 2; header++) {
		gen_begin(&g, dir, "function_graph", "x86-tsc");
		write_chunk();
		gen_end(&g, GEN_START + 2 * SECOND);
		d = open_data();
		assert_false(d->damaged);
		truncate_chunks(header ? 8010 : 8000);
		for (int pass = 0; pass < 2; pass++) {
			read_all(d, &totals);
			assert_int_equal(totals.read_errors, 1);
			assert_true(d->damaged);
			assert_int_equal(d->nr_notes, 1);
			assert_true(has_note(d, "records can't be read (the file is cut off)"));
		}
		pb_data_close(d);
	}
}

/* If a thread has lost calls and has no chunk, the time of its losses is that of its first hit. */
static void test_lost_only(void **state)
{
	struct pb_ring_thread t = { .serial = 1, .pid = 100, .tid = 100, .image = 1, .lost = 5,
				    .start = GEN_START + 500 };
	struct pb_stream_totals totals;
	struct pb_data *d;

	gen_begin(&g, dir, "function_graph", "x86-tsc");
	gen_meta(&g, PB_META_THREAD, &t, sizeof(t), "t");
	gen_end(&g, GEN_START + 2 * SECOND);
	d = open_data();
	assert_int_equal(read_all(d, &totals), GEN_START + 500);
	assert_int_equal(totals.lost, 5);
	pb_data_close(d);
}

/* The END record also counts calls without return of threads that have no THREAD record. */
static void test_no_return(void **state)
{
	struct pb_meta_end end = { .threads = 1, .no_return = 7 };
	struct pb_stream_totals totals;
	struct pb_data *d;

	gen_begin(&g, dir, "function_graph", "x86-tsc");
	gen_thread(&g, 1, 100, 100, "t", 0, 3);
	gen_meta(&g, PB_META_END, &end, sizeof(end), NULL);
	gen_close(&g);
	d = open_data();
	read_all(d, &totals);
	assert_int_equal(totals.no_return, 7);
	pb_data_close(d);
}

/* The functions follow each other without a gap: at 0x1000, 0x1100 and 0x1200. */
static void test_callers(void **state)
{
	static const char *const names[] = { "one", "two", "three" };
	static const struct { uint64_t address; const char *caller, *name; } cases[] = {
		{ 0x1010, "one", "one" }, { 0x1100, "one", "two" }, { 0x1101, "two", "two" },
		{ 0x1000, "one", "one" },	/* no function ends here: as __restore_rt */
		{ 0x1300, "three", "module1.so+0x1300" },
		{ 0x1310, "module1.so+0x1310", "module1.so+0x1310" },
		{ 0x2300, "0x7f0000002300", "0x7f0000002300" },
	};
	const uint64_t bias = 0x7f0000000000;
	struct pb_data *d;
	char buf[100];

	gen_begin(&g, dir, "function", "x86-tsc");
	gen_image(&g, 1, 100, "/usr/bin/victim");
	gen_module(&g, 1, 1, 100, 1, bias, names, 3);
	gen_end(&g, GEN_START + 2 * SECOND);
	d = open_data();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pb_symbols_caller(d->symbols, 1, 100, GEN_START + 1, bias + cases[i].address, buf,
				  sizeof(buf));
		assert_string_equal(buf, cases[i].caller);
		pb_symbols_address(d->symbols, 1, 100, GEN_START + 1, bias + cases[i].address, buf,
				   sizeof(buf));
		assert_string_equal(buf, cases[i].name);
	}
	pb_data_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleep), cmocka_unit_test(test_large_meta),
		cmocka_unit_test(test_notes), cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_lost_only), cmocka_unit_test(test_no_return),
		cmocka_unit_test(test_callers), cmocka_unit_test(test_counts_unreadable),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
