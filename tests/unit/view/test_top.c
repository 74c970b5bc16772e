/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests the estimates of `live --top`. Simulated threads write chunks as the engine does, and count
 * for themselves. If all chunks are decoded, the sums must be the threads' own. If only a few
 * chunks are chosen at random, the mean over many choices must be near the threads' own sums. A
 * wrong weight moves the mean. So does time that counts twice or not at all where a chunk ends. The
 * seeds are fixed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../test_descriptors.h"
#include "../test_dir.h"
#include "../recordings/gen_data.h"
#include "reader/drain.h"
#include "reader/open_chunks.h"
#include "view/top_priv.h"

#define SITES	8
#define DEPTH	200
#define RUNS	300

struct truth {
	double calls, total, self;
};

/* --- a thread ---------------------------------------------------------------- */

static char err[5000];
static struct pb_out out = { .fd = -1 };
static struct gen g;
static struct truth truth[SITES];
static struct sim {
	uint32_t serial;
	uint64_t seq, now, chunks;
	unsigned depth, room, words;	/* words: room in a chunk after its list of open calls */
	struct { uint32_t site; uint64_t start, child; bool written; } calls[DEPTH];
} t;

static void begin_chunk(void)
{
	gen_chunk(&g, t.serial, 99 + t.serial, t.seq++, t.now);
	for (unsigned i = 0; i < t.depth; i++)
		g.head.depth += t.calls[i].written;
	for (unsigned i = 0, left = g.head.depth; i < t.depth; i++)
		if (t.calls[i].written && left-- <= PB_CHUNK_OPEN_MAX)
			gen_ext1(&g, PB_EXT_OPEN, t.calls[i].site, 0, t.calls[i].start);
	g.last = t.now;
	t.room = g.nr + t.words;
	t.chunks++;
}

/* Begins a chunk if this one is full. */
static void make_room(void)
{
	if (g.nr + 4 <= t.room)
		return;
	gen_chunk_write(&g);
	begin_chunk();
}

static void begin_thread(uint32_t serial, unsigned words)
{
	t = (struct sim){ .serial = serial, .now = GEN_START + serial, .words = words };
	begin_chunk();
}

static void call(uint32_t site)
{
	if (t.depth && !t.calls[t.depth - 1].written) {
		t.calls[t.depth - 1].written = true;
		make_room();
		gen_entry(&g, t.calls[t.depth - 1].site, t.calls[t.depth - 1].start);
	}
	t.now++;
	t.calls[t.depth].site = site;
	t.calls[t.depth].start = t.now;
	t.calls[t.depth].child = 0;
	t.calls[t.depth++].written = false;
	g.head.leaf_site = site;
	g.head.leaf_start = t.now;
}

/* Adds a call that ends now to the thread's own sums. */
static void count(unsigned depth)
{
	uint32_t site = t.calls[depth].site;
	uint64_t ticks = t.now - t.calls[depth].start;
	bool outermost = true;

	for (unsigned i = 0; i < depth; i++)
		outermost &= t.calls[i].site != site;
	truth[site].calls++;
	truth[site].self += (double)(ticks - t.calls[depth].child);
	truth[site].total += outermost ? (double)ticks : 0;
	if (depth)
		t.calls[depth - 1].child += ticks;
}

static void end(void)
{
	unsigned depth = t.depth - 1;

	count(depth);
	make_room();
	t.depth--;
	if (t.calls[depth].written)
		gen_exit(&g, t.calls[depth].site, t.now);
	else
		gen_leaf(&g, t.calls[depth].site, t.calls[depth].start, t.now);
}

static void leaf(uint32_t site, uint64_t ticks)
{
	call(site);
	t.now += ticks;
	end();
	t.now += 3;
}

/* The thread's last chunk is written as it is; its calls are open. */
static void end_thread(uint64_t time)
{
	t.now = time;
	for (unsigned i = t.depth; i--;)
		count(i);
	g.head.state = PB_CHUNK_OPEN;
	gen_chunk_write(&g);
}

/* --- what threads do ------------------------------------------------------------ */

/* Short calls, one inside the other. */
static void busy(uint32_t serial, unsigned n)
{
	begin_thread(serial, 60);
	call(1);
	t.now += 50;
	for (unsigned i = 0; i < n; i++) {
		call(2);
		t.now += 20;
		leaf(3, 30 + i % 7);
		leaf(3, 40);
		end();
		t.now += 5;
	}
}

/* Bursts of short calls between long calls. Some of the long calls make a call at their end, so
 * that their ENTRY is written late. */
static void bursts(uint32_t serial, unsigned n)
{
	begin_thread(serial, 60);
	call(1);
	for (unsigned i = 0; i < n; i++) {
		call(4);
		t.now += 30000 + 1000 * (i % 5);
		if (i % 3 == 0)
			leaf(5, 100);
		end();
		for (unsigned k = 0; k < 25 * (i % 4); k++)
			leaf(5, 20);
	}
}

/* One call lasts longer than all others together. So its chunk is so large a part of the thread's
 * time that the chunk is always chosen (reader/sample.c). */
static void sleeper(uint32_t serial, unsigned n)
{
	begin_thread(serial, 60);
	call(1);
	for (unsigned i = 0; i < n; i++) {
		leaf(5, 20);
		if (i == n / 2) {
			call(4);
			t.now += n * 30;
			leaf(5, 20);
			end();
		}
	}
}

/* Recursion, deeper than a chunk's list. */
static void deep(uint32_t serial, unsigned n, unsigned depth)
{
	begin_thread(serial, 60);
	call(1);
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < depth; k++) {
			call(6);
			t.now += 40;
		}
		leaf(7, 500);
		while (t.depth > 1) {
			t.now += 10;
			end();
		}
	}
}

/* Calls of which a chunk has only a few, so that many last from one chunk to the next. */
static void long_calls(uint32_t serial, unsigned n)
{
	begin_thread(serial, 12);
	call(1);
	for (unsigned i = 0; i < n; i++) {
		call(4);
		t.now += 1200000;
		for (unsigned k = 0; k < i * 7 % 5; k++)
			leaf(5, 200000);
		end();
	}
}

/* --- comparing ---------------------------------------------------------------- */

/* Adds the table's numbers to `sum`. Returns how many bytes of records were skipped. */
static uint64_t estimate(double share, uint64_t seed, uint64_t now, struct truth sum[SITES])
{
	struct pb_top top = { .out = &out, .sample = { .share = share, .random = seed } };
	struct pb_follow *f = pb_follow_open(dir, PB_DEMANGLE_NO, 0, err, sizeof(err));
	const struct pb_report *r;
	uint64_t skipped;

	assert_non_null(f);
	assert_int_equal(pb_follow_update(f, NULL, false), 0);
	assert_int_equal(pb_top_round(&top, f, true), 0);
	assert_int_equal(pb_top_compute(&top, f, now, true), 0);
	assert_int_equal(pb_stream_totals(pb_follow_stream(f))->chunks_missing, 0);
	assert_int_equal(pb_stream_totals(pb_follow_stream(f))->read_errors, 0);
	r = &top.groups[0]->report;
	for (size_t i = 0; i < r->nr; i++) {
		unsigned site;

		assert_int_equal(sscanf(r->rows[i].name, "site:%u", &site), 1);
		assert_in_range(site, 0, SITES - 1);
		sum[site].calls += (double)r->rows[i].calls;
		sum[site].total += 2 * (double)r->rows[i].total;	/* two ticks are one ns */
		sum[site].self += 2 * (double)r->rows[i].self;
	}
	skipped = top.sample.skipped;
	pb_top_free(&top);
	pb_follow_close(f);
	return skipped;
}

static void near(const char *what, unsigned site, double is, double want, double error)
{
	double difference = is > want ? is - want : want - is;

	if (difference > want * error + 2)
		fail_msg("site %u: %s is %.0f, not %.0f", site, what, is, want);
}

/* The sums of all chunks must be right, and the mean of the estimates must be within `error`. */
static void compare(uint64_t now, double error)
{
	struct truth all[SITES] = { 0 }, sum[SITES] = { 0 };
	uint64_t skipped = 0;

	gen_end(&g, 1ull << 40);
	assert_int_equal(estimate(1, 1, now, all), 0);
	for (unsigned i = 0; i < SITES; i++) {
		near("calls", i, all[i].calls, truth[i].calls, 0);
		near("total", i, all[i].total, truth[i].total, 0);
		near("self", i, all[i].self, truth[i].self, 0);
	}
	for (uint64_t seed = 1; seed <= RUNS; seed++)
		skipped += estimate(1e-12, seed * 0x9e3779b97f4a7c15ull, now, sum);
	assert_true(skipped);
	for (unsigned i = 0; i < SITES; i++) {
		near("calls", i, sum[i].calls / RUNS, truth[i].calls, error);
		near("total", i, sum[i].total / RUNS, truth[i].total, error);
		near("self", i, sum[i].self / RUNS, truth[i].self, error);
	}
}

static void start(void)
{
	memset(truth, 0, sizeof(truth));
	gen_begin(&g, dir, "function_graph", "x86-tsc");
}

static void test_busy(void **state)
{
	uint64_t now;

	start();
	busy(1, 2000);
	now = t.now;
	end_thread(now);
	busy(2, 500);
	end_thread(now);
	compare(now, 0.03);
}

static void test_bursts(void **state)
{
	uint64_t now;

	start();
	bursts(1, 200);
	now = t.now;
	end_thread(now);
	busy(2, 1000);
	end_thread(now > t.now ? now : t.now);
	compare(now > t.now ? now : t.now, 0.05);
}

static void test_sleeper(void **state)
{
	uint64_t now;

	start();
	sleeper(1, 4000);
	now = t.now;
	end_thread(now);
	compare(now, 0.03);
}

static void test_deep(void **state)
{
	uint64_t now;

	start();
	deep(1, 50, 60);
	now = t.now;
	end_thread(now);
	compare(now, 0.05);
}

static void test_long_calls(void **state)
{
	uint64_t now;

	start();
	long_calls(1, 400);
	now = t.now;
	end_thread(now);
	compare(now, 0.03);
}

/* The sums of the times of many threads over days. As a multiple of PB_SAMPLE_UNIT, such a sum
 * needs more than 64 bits. */
static void test_many_days(void **state)
{
	enum { THREADS = 4 };
	const uint64_t day = 1ull << 55;
	struct truth sum[SITES] = { 0 };

	start();
	for (uint32_t i = 1; i <= THREADS; i++) {
		gen_chunk(&g, i, 99 + i, 0, GEN_START);
		gen_entry(&g, 1, GEN_START);
		gen_long(&g, 2, GEN_START + day, GEN_START + 2 * day);
		gen_exit(&g, 1, GEN_START + 2 * day);
		gen_entry(&g, 3, GEN_START + 2 * day);
		g.head.state = PB_CHUNK_OPEN;
		gen_chunk_write(&g);
	}
	gen_end(&g, 1ull << 40);
	assert_int_equal(estimate(1, 1, GEN_START + 3 * day, sum), 0);
	near("total", 1, sum[1].total, 2. * THREADS * (double)day, 0.001);
	near("self", 1, sum[1].self, 1. * THREADS * (double)day, 0.001);
	near("self", 2, sum[2].self, 1. * THREADS * (double)day, 0.001);
	near("total", 3, sum[3].total, 1. * THREADS * (double)day, 0.001);
}

/* --- threads that are gone, and stacks that move ------------------------------- */

/* Returns the total time of the function 1 in the group's table, in ns. */
static uint64_t total_of(const struct pb_top *top, size_t group)
{
	const struct pb_report *r;

	if (group >= top->nr_groups)
		return 0;
	r = &top->groups[group]->report;
	for (size_t i = 0; i < r->nr; i++)
		if (!strcmp(r->rows[i].name, "site:1") || !strcmp(r->rows[i].name, "one"))
			return r->rows[i].total;
	return 0;
}

/* Makes a table of the time up to `now`. Returns the total time of the function 1. */
static uint64_t next_table(struct pb_top *top, struct pb_follow *f, struct pb_open_chunks *o,
			   uint64_t now)
{
	o->clock = now;
	assert_int_equal(pb_follow_update(f, o, false), 0);
	assert_int_equal(pb_top_round(top, f, true), 0);
	assert_int_equal(pb_top_compute(top, f, now, false), 0);
	return total_of(top, 0);
}

/* A thread ends or leaves its image in a call, and hands over its chunk as FULL. From then on, the
 * call takes no time. If the thread has a chunk again, its time counts once. */
static void test_gone(void **state)
{
	struct pb_top top = { .out = &out, .sample = { .share = 1 } };
	struct pb_drain drain = { .bytes = sizeof(struct pb_data_header) };
	struct pb_open_chunk slot = { 0 };
	struct pb_open_chunks o = { .drain = &drain };
	const uint64_t s = GEN_START;
	struct pb_follow *f;

	gen_begin(&g, dir, "function_graph", "x86-tsc");
	f = pb_follow_open(dir, PB_DEMANGLE_NO, 0, err, sizeof(err));
	assert_non_null(f);
	next_table(&top, f, &o, s + 1000);
	gen_chunk(&g, 1, 101, 0, s + 2000);
	gen_entry(&g, 1, s + 2000);
	gen_leaf(&g, 2, s + 3000, s + 4000);
	drain.bytes += sizeof(g.head) + g.nr * 8;
	gen_chunk_write(&g);
	assert_int_equal(next_table(&top, f, &o, s + 10000), 2000);
	assert_int_equal(next_table(&top, f, &o, s + 20000), 0);
	assert_int_equal(next_table(&top, f, &o, s + 30000), 0);
	/* it was only without a chunk for a time */
	gen_chunk(&g, 1, 101, 1, s + 35000);
	slot.head = g.head;
	slot.latest = slot.last = s + 35000;
	o.slots = &slot;
	o.nr_slots = 1;
	assert_int_equal(next_table(&top, f, &o, s + 40000), 36000);
	assert_int_equal(next_table(&top, f, &o, s + 50000), 10000);
	o.nr_slots = 0;
	assert_int_equal(next_table(&top, f, &o, s + 60000), 0);
	o.nr_slots = 1;
	assert_int_equal(next_table(&top, f, &o, s + 70000), 20000);
	pb_top_free(&top);
	pb_follow_close(f);
	gen_close(&g);
}

/* A process makes a second image that never has modules, and its records name this image. The
 * tables show the image's sites. */
static void test_image_without_modules(void **state)
{
	static const char *const names[] = { "one", "two" };
	struct pb_top top = { .out = &out, .sample = { .share = 1 } };
	struct pb_drain drain = { .bytes = sizeof(struct pb_data_header) };
	struct pb_open_chunks o = { .drain = &drain };
	const uint64_t s = GEN_START;
	struct pb_follow *f;

	gen_begin(&g, dir, "function_graph", "x86-tsc");
	gen_image(&g, 1, 100, "/bin/program");
	gen_module(&g, 1, 1, 100, 1, 0x400000, names, 2);
	f = pb_follow_open(dir, PB_DEMANGLE_NO, 0, err, sizeof(err));
	assert_non_null(f);
	for (uint32_t image = 1; image <= 2; image++) {
		if (image == 2)
			gen_image(&g, image, 100, "/bin/program");
		gen_chunk(&g, image, 100 + image, 0, s + 1000 * image);
		g.head.image = image;
		gen_leaf(&g, 1, s + 1000 * image, s + 1000 * image + 100 * image);
		drain.bytes += sizeof(g.head) + g.nr * 8;
		gen_chunk_write(&g);
		o.clock = s + 10000 * image;
		assert_int_equal(pb_follow_update(f, &o, false), 0);
		assert_int_equal(pb_follow_modules(f), image == 2);
		assert_int_equal(pb_top_round(&top, f, true), 0);
		assert_int_equal(pb_top_compute(&top, f, o.clock, false), 0);
		assert_int_equal(top.groups[0]->report.nr, 1);
		assert_string_equal(top.groups[0]->report.rows[0].name,
				    image == 1 ? "one" : "site:1");
		/* ticks; without a second reading of the clock, a tick counts as 1 ns */
		assert_int_equal(top.groups[0]->report.rows[0].total, 100 * image);
	}
	pb_top_free(&top);
	pb_follow_close(f);
	gen_close(&g);
}

/* Writes a chunk with two calls that are open, and a leaf inside them. */
static void one_more(struct pb_drain *d, uint64_t seq, uint64_t start)
{
	gen_chunk(&g, 1, 101, seq, start);
	for (uint32_t i = 0; i < 2 * seq; i++)
		gen_ext1(&g, PB_EXT_OPEN, 2 + i % 2, 0, GEN_START + 10000 * (i / 2 + 1) + i % 2);
	g.head.depth = (uint32_t)(2 * seq);
	g.last = start;
	gen_entry(&g, 2, start);
	gen_entry(&g, 3, start + 1);
	gen_leaf(&g, 1, start + 100, start + 200);
	d->bytes += sizeof(g.head) + g.nr * 8;
	gen_chunk_write(&g);
}

/* A new module changes the functions' numbers when this process can open no file. */
static void test_renumber(void **state)
{
	static const char *const names[] = { "one", "two", "three" }, *const other[] = { "other" };
	struct pb_top top = { .out = &out, .sample = { .share = 1 } };
	struct pb_drain drain = { .bytes = sizeof(struct pb_data_header) };
	struct pb_open_chunks o = { .drain = &drain };
	struct pb_follow *f;

	gen_begin(&g, dir, "function_graph", "x86-tsc");
	gen_image(&g, 1, 100, "/bin/program");
	gen_module(&g, 1, 2, 100, 1, 0x400000, names, 3);
	f = pb_follow_open(dir, PB_DEMANGLE_NO, 0, err, sizeof(err));
	for (uint64_t n = 1; n <= 4; n++) {
		if (n == 2) {
			gen_image(&g, 2, 102, "/bin/other");
			gen_module(&g, 2, 1, 102, 1, 0x500000, other, 1);
		}
		one_more(&drain, n - 1, GEN_START + 10000 * n);
		o.clock = GEN_START + 10000 * (n + 1);
		assert_int_equal(pb_follow_update(f, &o, false), 0);
		assert_int_equal(pb_follow_modules(f), n == 2 || n == 3);
		if (n == 2)
			set_descriptors(false);
		assert_int_equal(pb_top_round(&top, f, true), 0);
		if (n == 2)
			set_descriptors(true);
		assert_int_equal(pb_top_compute(&top, f, o.clock, true), 0);
		assert_int_equal(top.groups[0]->report.nr, 3);
		/* ticks; without a second reading of the clock, a tick counts as 1 ns */
		assert_int_equal(total_of(&top, 0), 100 * n);
	}
	pb_top_free(&top);
	pb_follow_close(f);
	gen_close(&g);
}

static void on_stack(uint32_t serial, uint64_t seq, uint64_t start)
{
	gen_chunk(&g, serial, 100 + serial, seq, start);
	g.head.stack = 1ull << 16 | 2;
}

/* Two threads use one stack in turn. Each pops calls of a recursive function that the other has
 * pushed. */
static void test_moving_stack(void **state)
{
	struct pb_top top = { .out = &out, .threads = true, .sample = { .share = 1 } };
	static const char *const names[] = { "one", "two", "three" };
	const uint64_t s = GEN_START;
	struct pb_follow *f;

	gen_begin(&g, dir, "function_graph", "x86-tsc");
	gen_image(&g, 1, 100, "/bin/program");
	gen_module(&g, 1, 1, 100, 1, 0x400000, names, 3);
	on_stack(1, 0, s);
	gen_entry(&g, 1, s + 1000);
	gen_entry(&g, 1, s + 2000);
	gen_chunk_write(&g);
	on_stack(2, 0, s + 5000);
	gen_ext1(&g, PB_EXT_OPEN, 1, 0, s + 1000);
	gen_ext1(&g, PB_EXT_OPEN, 1, 0, s + 2000);
	g.head.depth = 2;
	g.last = s + 5000;
	gen_exit(&g, 1, s + 6000);
	gen_exit(&g, 1, s + 7000);
	gen_chunk_write(&g);
	on_stack(1, 1, s + 10000);
	gen_entry(&g, 1, s + 11000);
	gen_exit(&g, 1, s + 12000);
	gen_entry(&g, 2, s + 13000);
	gen_entry(&g, 3, s + 14000);
	gen_leaf(&g, 1, s + 15000, s + 16000);
	gen_exit(&g, 3, s + 17000);
	gen_exit(&g, 2, s + 18000);
	gen_chunk_write(&g);
	gen_end(&g, 1ull << 40);
	f = pb_follow_open(dir, PB_DEMANGLE_NO, 0, err, sizeof(err));
	assert_non_null(f);
	assert_int_equal(pb_follow_update(f, NULL, true), 0);
	assert_int_equal(pb_top_round(&top, f, true), 0);
	assert_int_equal(pb_top_compute(&top, f, s + 20000, true), 0);
	/* two ticks are one ns */
	assert_int_equal(total_of(&top, 0), 1000);
	assert_int_equal(total_of(&top, 1), 3000);
	pb_top_free(&top);
	pb_follow_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_busy), cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_sleeper),
		cmocka_unit_test(test_deep), cmocka_unit_test(test_long_calls),
		cmocka_unit_test(test_many_days),
		cmocka_unit_test(test_gone), cmocka_unit_test(test_image_without_modules),
		cmocka_unit_test(test_renumber), cmocka_unit_test(test_moving_stack),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
