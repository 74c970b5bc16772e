/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the decoder: which events it makes of a chunk's words. Also tests how the reader reads the
 * files of a directory, and the clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../test_dir.h"
#include "test_reader_starts.h"
#include "reader_events.h"

static void test_words(void **state)
{
	begin_chunk(0x1000);
	/* ENTRY: tag 2, site 5 << 2, time 0x1010 << 22 */
	gen_word(&g, 0x0000000404000000 | 5 << 2 | 2);
	/* LEAF: tag 1, site 7 << 2, duration 0x10 << 22, end 0x1030 << 42 */
	gen_word(&g, 0x0040c00004000000 | 7 << 2 | 1);
	/* EXT CALL: tag 0, type 2 << 2, length 1 << 8, site 9 << 16, time 0x1040 << 36 */
	gen_word(&g, 0x0001040000090108);
	/* EXT FUNC: type 3, 2 words, site 9, time 0x1050; parent_ip */
	gen_word(&g, 0x000105000009020c);
	gen_word(&g, 0x401234);
	/* EXT LONG: type 5, 3 words, site 11; start, end */
	gen_word(&g, 0x00000000000b0314);
	gen_word(&g, 0x2000);
	gen_word(&g, 0x90000000);
	/* EXIT: tag 3, site 5, time 0x90000010 */
	gen_word(&g, 0x90000010ull << 22 | 5 << 2 | 3);
	assert_string_equal(finish(),
			    "entry 5 @4112 d0\n"
			    "leaf 7 4128-4144 d1\n"
			    "call 9 @4160 d1\n"
			    "func 9 @4176 d1\n"
			    "leaf 11 8192-2415919104 d1\n"
			    "exit 5 4112-2415919120 d0\n");
}

static void test_wraps(void **state)
{
	const uint64_t w22 = 1 << 22, w28 = 1 << 28, w42 = 1ull << 42;

	begin_chunk(w42 - 10);
	g.head.tid = 101;	/* not the first thread of its process, so it inherits no calls */
	/* 22 bits: the low bits wrap around to 0 */
	gen_word(&g, 5ull << 42 | 4ull << 22 | 3 << 2 | 1);		/* ends w42 + 5 */
	/* 42 bits: backwards over the wrap; a signal handler's record isn't in the order of time */
	gen_word(&g, (w42 - 20) << 22 | 3 << 2 | 2);			/* w42 - 20 */
	/* 42 bits: forward again */
	gen_word(&g, 100ull << 22 | 3 << 2 | 3);			/* w42 + 100 */
	/* the longest step forward that 22 bits can express: 2^21 - 1 */
	gen_word(&g, ((100 + w22 / 2 - 1) & (w22 - 1)) << 42 | 3 << 2 | 1);
	/* the longest step backward: 2^21 */
	gen_word(&g, ((99 + w22 / 2 - w22 / 2) & (w22 - 1)) << 42 | 3 << 2 | 1);
	/* 28 bits, which wrap around */
	gen_ext1(&g, PB_EXT_TIME, 0, 0, 3 * w28 - 1);
	gen_word(&g, pb_ext_word(PB_EXT_CALL, 1, 4, 7));		/* 3 * w28 + 7 */
	assert_string_equal(finish(),
			    "leaf 3 4398046511105-4398046511109 d0\n"
			    "entry 3 @4398046511084 d0\n"
			    "exit 3 4398046511084-4398046511204 d0\n"
			    "leaf 3 @4398048608355 d0\n"
			    "leaf 3 @4398046511203 d0\n"
			    "call 4 @805306375 d0\n");
}

static void test_holes(void **state)
{
	begin_chunk(1000);
	gen_word(&g, 0);
	gen_leaf(&g, 3, 1100, 1110);
	gen_word(&g, 0);
	gen_word(&g, 0);
	gen_word(&g, pb_ext_word(PB_EXT_PAD, 3, 0, 0));
	gen_word(&g, ~0ull);
	gen_word(&g, ~0ull);
	gen_word(&g, pb_ext_word(60, 2, 0, 0));		/* an unknown type, of a later version */
	gen_word(&g, 12345);
	gen_word(&g, pb_ext_word(PB_EXT_CALL, 0, 9, 5));	/* without a length: one word is
								 * skipped */
	gen_leaf(&g, 4, 1120, 1130);
	gen_word(&g, pb_ext_word(PB_EXT_FUNC, 1, 9, 5));	/* too short for its type */
	gen_leaf(&g, 5, 1140, 1150);
	for (int i = 0; i < 100; i++)
		gen_word(&g, 0);
	assert_string_equal(finish(),
			    "leaf 3 1100-1110 d0\nleaf 4 1120-1130 d0\nleaf 5 1140-1150 d0\n");
}

static void fill_with_zeros(uint32_t until)
{
	while (g.nr < until)
		gen_word(&g, 0);
}

/* Counts words that were reserved and never written. Words after the chunk's limit don't count: no
 * record begins there. */
static void test_unwritten(void **state)
{
	const uint32_t limit = (PB_CHUNK_SIZE - PB_CHUNK_HEADER - PB_CHUNK_DEAD_ZONE) / 8;
	const uint32_t end = (PB_CHUNK_SIZE - PB_CHUNK_HEADER) / 8;

	begin_chunk(1000);
	gen_word(&g, 0);
	gen_leaf(&g, 3, 1100, 1110);
	gen_word(&g, 0);
	gen_word(&g, 0);
	gen_word(&g, pb_ext_word(PB_EXT_UNDONE, 3, 0, 0));
	gen_word(&g, 0);
	gen_word(&g, 0);
	gen_word(&g, pb_ext_word(PB_EXT_PAD, 2, 0, 0));
	gen_word(&g, 0);
	while (g.nr < limit - 2)
		gen_leaf(&g, 3, 1120, 1130);
	fill_with_zeros(end - 1);
	gen_word(&g, pb_ext_word(PB_EXT_PAD, 1, 0, 0));
	gen_chunk_write(&g);
	gen_chunk(&g, 1, 100, 1, 2000);
	gen_word(&g, 0);
	gen_word(&g, pb_ext_word(PB_EXT_PAD, 1, 0, 0));
	finish();
	assert_int_equal(unwritten, 1 + 2 + 1 + 2 + 1);
}

static void test_ends(void **state)
{
	begin_chunk(1000);
	gen_entry(&g, 1, 1010);
	gen_entry(&g, 2, 1020);
	gen_entry(&g, 3, 1030);
	gen_ext1(&g, PB_EXT_END, 4, 1050, 1040);	/* a leaf that ended by a jump */
	gen_ext1(&g, PB_EXT_END, 2, 1060, PB_END_ENTRY);		/* skips 3 */
	gen_entry(&g, 2, 1070);
	gen_exit(&g, 1, 1080);				/* skips 2 */
	gen_exit(&g, 9, 1090);				/* has no ENTRY */
	gen_ext1(&g, PB_EXT_END, 9, 1100, PB_END_ENTRY);
	assert_string_equal(finish(),
			    "entry 1 @1010 d0\nentry 2 @1020 d1\nentry 3 @1030 d2\n"
			    "end 4 1040-1050 d3\n"
			    "end 3 1030-1060 d2 skipped\nend 2 1020-1060 d1\n"
			    "entry 2 @1070 d1\n"
			    "end 2 1070-1080 d1 skipped\nexit 1 1010-1080 d0\n"
			    "exit 9 0-1090 d0\nend 9 0-1100 d0\n");
}

static void test_tail_calls(void **state)
{
	begin_chunk(1000);
	gen_entry(&g, 1, 1010);
	gen_tail_leaf(&g, 2, 1020, 1030);
	gen_leaf(&g, 3, 1040, 1050);		/* the function to which 2 jumped */
	gen_entry(&g, 4, 1060);
	gen_entry(&g, 5, 1070);
	gen_ext(&g, PB_EXT_TAIL, 4, 1080);	/* skips 5 */
	gen_ext(&g, PB_EXT_TAIL, 9, 1090);	/* has no ENTRY */
	gen_tail_leaf(&g, 6, 500, 1ull << 40);	/* longer than a LEAF can express */
	gen_exit(&g, 1, (1ull << 40) + 10);
	assert_string_equal(finish(),
			    "entry 1 @1010 d0\nleaf 2 1020-1030 d1 tail\nleaf 3 1040-1050 d1\n"
			    "entry 4 @1060 d1\nentry 5 @1070 d2\n"
			    "end 5 1070-1080 d2 skipped\nexit 4 1060-1080 d1 tail\n"
			    "exit 9 0-1090 d1 tail\n"
			    "exit 6 0-1099511627776 d1 inherited tail\n"
			    "exit 1 1010-1099511627786 d0\n");
}

/* A TAIL_LEAF has the type 13 and two words. The type is in the first word as 13 << 2. Also tests
 * TAIL_LEAFs that a jump out of a handler left incomplete, longer records of a later version,
 * records without a length, and a cut-off last record. */
static void test_tail_words(void **state)
{
	begin_chunk(0x1000);
	g.head.tid = 101;
	gen_word(&g, 0x0001010000070234);		/* site 7, time 0x1010 */
	gen_word(&g, 0x000000000008012c);		/* duration 8, as an ADDRESS */
	gen_word(&g, 0);
	gen_word(&g, 0x000000000008012c);		/* is ignored after a hole */
	/* TAIL: 12 << 2, one word, site 8, time 0x1020 */
	gen_word(&g, 0x0001020000080130);
	gen_word(&g, pb_ext_word(PB_EXT_TAIL, 3, 8, 0x1030));
	gen_word(&g, 0x401005);
	gen_word(&g, 0x401006);
	gen_word(&g, pb_ext_word(PB_EXT_TAIL, 0, 8, 0x1040));
	gen_word(&g, pb_ext_word(PB_EXT_TAIL_LEAF, 1, 8, 0x1050));
	gen_word(&g, pb_ext_word(PB_EXT_TAIL_LEAF, 2, 9, 0x1060));
	gen_word(&g, ~0ull);			/* the duration is longer than the clock has run */
	gen_word(&g, pb_ext_word(PB_EXT_TAIL_LEAF, 2, 8, 0x1070));
	assert_string_equal(finish(),
			    "leaf 7 4104-4112 d0 tail\nexit 8 0-4128 d0 tail\n"
			    "exit 8 0-4144 d0 tail\nleaf 9 0-4192 d0 tail\n");
}

/* A tail leaf is sorted by its start among the events of other threads. */
static void test_tail_order(void **state)
{
	begin_chunk(1000);
	gen_tail_leaf(&g, 1, 1010, 1100);
	gen_chunk_write(&g);
	gen_chunk(&g, 2, 101, 0, 1000);
	gen_leaf(&g, 2, 1005, 1006);
	gen_leaf(&g, 3, 1050, 1060);
	assert_string_equal(finish(),
			    "leaf 2 1005-1006 d0\nleaf 1 1010-1100 d0 tail\nleaf 3 1050-1060 d0\n");
}

static void truncate_chunks(off_t by)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/chunks", dir);
	fd = open(path, O_WRONLY);
	assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) - by), 0);
	close(fd);
}

static void test_truncated(void **state)
{
	static const struct { off_t by; const char *want; } cases[] = {
		{ 1, "leaf 1 1010-1020 d0\nleaf 2 1030-1040 d0\n" },	/* within FUNC */
		{ 8, "leaf 1 1010-1020 d0\nleaf 2 1030-1040 d0\n" },	/* without its payload */
		{ 17, "leaf 1 1010-1020 d0\n" },			/* within a word */
		{ 32, "" }, { 33, "" }, { 100, "" }, { 160, "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin_chunk(1000);
		gen_leaf(&g, 1, 1010, 1020);
		gen_leaf(&g, 2, 1030, 1040);
		gen_ext1(&g, PB_EXT_FUNC, 3, 1050, pb_ext_address(0x1234));
		gen_chunk_write(&g);
		gen_end(&g, 1ull << 60);
		truncate_chunks(cases[i].by);
		assert_string_equal(events(true), cases[i].want);
	}
}

/* The reader reads a chunk in pieces, through a window. A record may cross the window's end.
 * Windows of all sizes give the same events. */
static void test_windows(void **state)
{
	char err[5000], *first = NULL;

	begin_chunk(1000);
	for (uint64_t t = 1000; g.nr < 1500; t += 100) {
		gen_entry(&g, 1, t + 1);
		gen_ext1(&g, PB_EXT_FUNC, 2, t + 2, pb_ext_address(0x1234));
		gen_long(&g, 3, t + 10, t + 20);
		gen_word(&g, pb_ext_word(PB_EXT_PAD, 5, 0, 0));
		for (int i = 0; i < 4; i++)
			gen_word(&g, ~0ull);
		gen_exit(&g, 1, t + 50);
	}
	gen_chunk_write(&g);
	gen_end(&g, 1ull << 60);
	for (uint32_t window = 64; window <= 16384; window += window < 256 ? 8 : 1000) {
		struct pb_data *d = pb_data_open(dir, 0, err, sizeof(err));
		struct pb_stacks *stacks = pb_stacks_new();
		struct pb_cursor c;
		struct pb_event ev;

		assert_non_null(d);
		assert_int_equal(pb_cursor_init(&c, d, stacks, &d->threads[0], window), 0);
		text[0] = 0;
		while (pb_cursor_next(&c, &ev) && strlen(text) < 60000)
			note(&ev);
		pb_cursor_free(&c);
		pb_stacks_free(stacks);
		pb_data_close(d);
		if (!first)
			first = strdup(text);
		assert_string_equal(text, first);
	}
	assert_true(strlen(first) > 1000);
	free(first);
}

static void test_order(void **state)
{
	/* the chunks are in any order, and one of them comes twice */
	begin();
	gen_chunk(&g, 1, 100, 1, 1100);
	gen_leaf(&g, 2, 1110, 1120);
	gen_chunk_write(&g);
	gen_chunk(&g, 2, 101, 0, 1000);
	gen_leaf(&g, 3, 1050, 1060);
	gen_leaf(&g, 3, 1150, 1160);
	gen_chunk_write(&g);
	gen_chunk(&g, 1, 100, 0, 1000);
	gen_chunk_write(&g);
	gen_chunk(&g, 1, 100, 0, 1000);
	gen_leaf(&g, 1, 1010, 1020);
	assert_string_equal(finish(), "leaf 1 1010-1020 d0\nleaf 3 1050-1060 d0\n"
			    "leaf 2 1110-1120 d0\nleaf 3 1150-1160 d0\n");
}

static void expect_refused(const char *what)
{
	char err[5000];

	assert_null(pb_data_open(dir, 0, err, sizeof(err)));
	assert_non_null(strstr(err, what));
	assert_null(strchr(err, '\n'));
}

static void overwrite(const char *name, off_t at, uint32_t value)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, &value, 4, at), 4);
	close(fd);
}

static void test_refused(void **state)
{
	char path[64];

	begin_chunk(1000);
	finish();
	overwrite("chunks", 8, 99);
	expect_refused("format 99");
	overwrite("chunks", 0, 99);
	expect_refused("not written by Patchbay");
	begin_chunk(1000);
	finish();
	overwrite("meta", 0, 99);
	expect_refused("not written by Patchbay");
	snprintf(path, sizeof(path), "%s/meta", dir);
	unlink(path);
	expect_refused("no readable meta");
	begin_chunk(1000);
	gen_close(&g);
	truncate_chunks(10);
	expect_refused("cut off before its header");
}

static void test_clock(void **state)
{
	const struct pb_meta_clock pairs[] = {
		{ 3000, 10000, 20000, 30000, 40000 },
		{ 6000, 11000, 21000, 31000, 41000 },	/* before this reading, a tick is a third
							 * of a ns */
		{ 7000, 21000, 31000, 41000, 51000 },	/* from 6000 to 7000, a tick is ten ns */
		{ 6500, 5, 5, 5, 5 },			/* goes backwards, so pb_clock_init()
							 * ignores it */
	};
	struct pb_clock c;

	assert_int_equal(pb_clock_init(&c, "mono", pairs, 4), 0);
	assert_int_equal(pb_clock_ns(&c, 3000), 10000);
	assert_int_equal(pb_clock_ns(&c, 3002), 10000);
	assert_int_equal(pb_clock_ns(&c, 3003), 10001);
	assert_int_equal(pb_clock_ns(&c, 6000), 11000);
	assert_int_equal(pb_clock_ns(&c, 6001), 11010);
	assert_int_equal(pb_clock_ns(&c, 8000), 31000);		/* the last rate continues */
	assert_int_equal(pb_clock_ns(&c, 0), 9000);
	assert_int_equal(pb_clock_ticks(&c, 10001), 3003);
	assert_int_equal(pb_clock_ticks(&c, 0), 0);
	assert_int_equal(pb_clock_span(&c, 4000), 11000);
	/* three readings count; the middle one differs from the straight line between the other
	 * two by 18250 - 11000 */
	assert_int_equal(c.readings, 3);
	assert_int_equal(c.span_ns, 11000);
	assert_int_equal(c.off_ns, 7250);
	assert_int_equal(c.khz, 4000 * 1000000ull / 11000);
	pb_clock_free(&c);
	assert_int_equal(pb_clock_init(&c, "x86-tsc", pairs, 4), 0);
	assert_int_equal(pb_clock_ns(&c, 3000), 0);
	assert_int_equal(pb_clock_ns(&c, 6000), 1000);
	assert_int_equal(pb_clock_ns(&c, 10), 0);		/* times are never below zero */
	pb_clock_free(&c);
	assert_int_equal(pb_clock_init(&c, "boot", pairs, 1), 0);
	assert_true(c.uncalibrated);
	pb_clock_free(&c);
	assert_int_equal(pb_clock_init(&c, "none", NULL, 0), 0);
	assert_true(c.none && !c.uncalibrated);
	pb_clock_free(&c);
}

static int set_up(void **state)
{
	events_dir = dir;
	return make_dir(state);
}

/* The main thread makes an exec on a coroutine. The new image's first coroutine has the same id. */
static void test_exec_on_coroutine(void **state)
{
	const uint64_t id = 1ull << 16 | 2;

	begin_chunk(1000);
	g.head.stack = id;
	g.head.tid = 101;
	gen_entry(&g, 3, 1010);
	gen_entry(&g, 4, 1020);
	gen_chunk_write(&g);
	gen_chunk(&g, 2, 101, 0, 2000);
	g.head.stack = id;
	g.head.image = 2;
	gen_entry(&g, 3, 2010);
	gen_leaf(&g, 4, 2020, 2030);
	gen_exit(&g, 3, 2040);
	assert_string_equal(finish(),
			    "entry 3 @1010 d0\n"
			    "entry 4 @1020 d1\n"
			    "entry 3 @2010 d0\n"
			    "leaf 4 2020-2030 d1\n"
			    "exit 3 2010-2040 d0\n");
}

static void list(unsigned nr, uint32_t site, uint64_t start)
{
	for (unsigned i = 0; i < nr; i++)
		gen_ext1(&g, PB_EXT_OPEN, site, 0, start + i);
	g.last = g.head.start;
}

static const char *last_lines(const char *s, unsigned nr)
{
	const char *at = s + strlen(s);

	for (nr++; at > s && nr; at--)
		nr -= at[-1] == '\n';
	return nr ? s : at + 1;
}

/* A list has room for 128 of 300 calls. In the next gap, all of these calls end. */
static void test_outer_calls_end(void **state)
{
	begin();
	gen_chunk(&g, 1, 101, 5, 10000);
	g.head.depth = 300;
	list(PB_CHUNK_OPEN_MAX, 7, 9000);
	gen_leaf(&g, 9, 10010, 10020);
	gen_chunk_write(&g);
	gen_chunk(&g, 1, 101, 7, 20000);
	g.head.depth = 1;
	list(1, 5, 8000);
	gen_leaf(&g, 9, 20010, 20020);
	gen_exit(&g, 5, 20030);
	gen_chunk_write(&g);
	gen_chunk(&g, 1, 101, 9, 30000);
	g.head.depth = 300;
	list(PB_CHUNK_OPEN_MAX, 7, 29000);
	gen_chunk_write(&g);
	gen_chunk(&g, 1, 101, 11, 40000);
	gen_leaf(&g, 9, 40010, 40020);
	finish();
	assert_non_null(strstr(text, "leaf 9 10010-10020 d300\n"));
	assert_non_null(strstr(text, "open 5 8000-10020 d0\n") ?:
			strstr(text, "open 5 8000-20000 d0\n"));
	assert_non_null(strstr(text, "leaf 9 20010-20020 d1\nexit 5 8000-20030 d0\n"));
	assert_string_equal(last_lines(text, 1), "leaf 9 40010-40020 d0\n");
}

/* A thread comes to a stack, and begins a chunk there: the chunk has the stack's id and its open
 * calls, and then the STACK record. */
static void test_list_before_stack(void **state)
{
	const uint64_t id = 1ull << 16 | 2;

	begin();
	gen_chunk(&g, 1, 101, 5, 10000);
	g.head.stack = id;
	g.head.depth = 1;
	list(1, 7, 9000);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, id);
	gen_leaf(&g, 9, 10010, 10020);
	gen_exit(&g, 7, 10030);
	assert_non_null(strstr(finish(), "leaf 9 10010-10020 d1\nexit 7 9000-10030 d0\n"));
}

/* A file may have many records of the session. Only the first counts, and is cleaned once: to clean
 * it again for each record would take hours. */
static void test_many_sessions(void **state)
{
	const size_t len = 8 << 20;
	char *first = malloc(len);

	assert_non_null(first);
	memset(first, 'x', len);
	memcpy(first, "cmdline=a\x1b""b\n", 12);
	gen_begin(&g, dir, "function_graph", "x86-tsc");
	assert_int_equal(ftruncate(g.meta, sizeof(struct pb_data_header)), 0);
	assert_int_equal(lseek(g.meta, 0, SEEK_END), sizeof(struct pb_data_header));
	gen_meta(&g, PB_META_SESSION, first, len, NULL);
	for (unsigned i = 0; i < 1000000; i++)
		gen_meta(&g, PB_META_SESSION, "later=1", 8, NULL);
	free(first);
	gen_close(&g);

	char err[5000], value[8];
	struct pb_data *d = pb_data_open(dir, 0, err, sizeof(err));

	assert_non_null(d);
	assert_true(pb_data_session(d, "cmdline", value, sizeof(value)));
	assert_string_equal(value, "a?b");
	assert_false(pb_data_session(d, "later", value, sizeof(value)));
	pb_data_close(d);
}

/* Makes the file `open` with one chunk of one call. */
static int open_file(uint64_t magic)
{
	char path[100];
	int fd;

	begin_chunk(1000);
	gen_leaf(&g, 3, 1010, 1020);
	gen_chunk_copy(&g, 1);
	gen_close(&g);
	snprintf(path, sizeof(path), "%s/open", dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &magic, sizeof(magic), 0), sizeof(magic));
	return fd;
}

static size_t open_chunks_read(bool *damaged)
{
	char err[5000];
	struct pb_data *d = pb_data_open(dir, 0, err, sizeof(err));
	size_t nr;

	assert_non_null(d);
	nr = d->nr_chunks;
	*damaged = d->damaged;
	pb_data_close(d);
	return nr;
}

/* The file `open` has holes where the ring has no open chunk. To read each slot of a file with a
 * huge hole would take hours. */
static void test_open_file(void **state)
{
	bool damaged;
	int fd = open_file(PB_DATA_MAGIC_OPEN);

	assert_int_equal(open_chunks_read(&damaged), 1);
	assert_false(damaged);
	g.head.seq = 1;
	assert_int_equal(pwrite(fd, &g.head, sizeof(g.head), 1000ll * PB_CHUNK_SIZE),
			 sizeof(g.head));
	if (ftruncate(fd, 1ll << 60) && ftruncate(fd, 1ll << 43))
		print_message("the file system has no large files\n");
	assert_int_equal(open_chunks_read(&damaged), 2);
	assert_false(damaged);
	close(fd);
	close(open_file(PB_DATA_MAGIC_META));
	assert_int_equal(open_chunks_read(&damaged), 0);
	assert_true(damaged);
	assert_int_equal(remove_dir(NULL) || mkdir(dir, 0700), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words), cmocka_unit_test(test_wraps),
		cmocka_unit_test(test_holes), cmocka_unit_test(test_unwritten),
		cmocka_unit_test(test_ends), cmocka_unit_test(test_tail_calls),
		cmocka_unit_test(test_tail_words), cmocka_unit_test(test_tail_order),
		cmocka_unit_test(test_stacks), cmocka_unit_test(test_same_stack_number_elsewhere),
		cmocka_unit_test(test_open_ignored), cmocka_unit_test(test_gap),
		cmocka_unit_test(test_lost_between), cmocka_unit_test(test_lost_by_header),
		cmocka_unit_test(test_inherited), cmocka_unit_test(test_inherited_deep),
		cmocka_unit_test(test_inherited_later), cmocka_unit_test(test_listed_not_inherited),
		cmocka_unit_test(test_inherited_without_entry),
		cmocka_unit_test(test_open_before_its_entry), cmocka_unit_test(test_open_list_cut),
		cmocka_unit_test(test_open_list_whole),
		cmocka_unit_test(test_open_list_short),
		cmocka_unit_test(test_leaf_open), cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_windows), cmocka_unit_test(test_order),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_clock),
		cmocka_unit_test(test_exec_on_coroutine), cmocka_unit_test(test_outer_calls_end),
		cmocka_unit_test(test_list_before_stack),
		cmocka_unit_test(test_many_sessions), cmocka_unit_test(test_open_file),
	};

	return cmocka_run_group_tests(tests, set_up, remove_dir);
}
