/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the sums of calls, the parsing of times, and the quoting in the output formats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test_dir.h"
#include "../recordings/gen_data.h"
#include "view/options.h"
#include "view/tree.h"

static struct gen g;
static struct pb_out out = { .fd = -1 };

static const char *written(void)
{
	out.buf[out.used] = 0;
	out.used = 0;
	return out.buf;
}

static void test_json(void **state)
{
	pb_out_json(&out, "a\"b\\c\n\x01 \xc3\xa9");
	assert_string_equal(written(), "\"a\\\"b\\\\c\\u000a\\u0001 \xc3\xa9\"");
	/* not UTF-8: a lone continuation byte, an overlong slash, a surrogate, a cut-off
	 * sequence */
	pb_out_json(&out, "\x80");
	assert_string_equal(written(), "\"\\ufffd\"");
	pb_out_json(&out, "\xc0\xaf");
	assert_string_equal(written(), "\"\\ufffd\\ufffd\"");
	pb_out_json(&out, "\xed\xa0\x80");
	assert_string_equal(written(), "\"\\ufffd\\ufffd\\ufffd\"");
	pb_out_json(&out, "\xe2\x82");
	assert_string_equal(written(), "\"\\ufffd\\ufffd\"");
}

static void test_csv(void **state)
{
	pb_out_csv(&out, "plain");
	assert_string_equal(written(), "plain");
	pb_out_csv(&out, "map<int, \"x\">");
	assert_string_equal(written(), "\"map<int, \"\"x\"\">\"");
}

static void test_numbers(void **state)
{
	pb_out_u64(&out, 0, 3, ' ');
	pb_out_u64(&out, UINT64_MAX, 1, '0');
	pb_out_u64(&out, 42, 6, '0');
	assert_string_equal(written(), "  018446744073709551615000042");
}

static void test_times(void **state)
{
	static const struct { const char *text; int ret; uint64_t ns; } cases[] = {
		{ "5us", 0, 5000 }, { "1.5ms", 0, 1500000 }, { "2s", 0, 2000000000 }, { "7", 0, 7 },
		{ "7ns", 0, 7 }, { "12.345678", 0, 12345678000 }, { "1m", 0, 60000000000 },
		{ "", -1, 0 }, { ".5s", -1, 0 }, { "5 us", -1, 0 }, { "5h", -1, 0 },
		{ "1.2.3", -1, 0 }, { "99999999999999999999", -1, 0 }, { "99999999999s", -1, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t ns = 0;

		assert_int_equal(pb_view_parse_time(cases[i].text, &ns) ? -1 : 0, cases[i].ret);
		if (!cases[i].ret)
			assert_int_equal(ns, cases[i].ns);
	}
}

/* Returns the sums of all sites. If the data directory has no modules, names are
 * "site:N". */
static struct pb_report sums(struct pb_data **d)
{
	char err[5000];
	struct pb_view v = { .out = &out, .to = UINT64_MAX };
	struct pb_report r;

	*d = v.data = pb_data_open(dir, 0, err, sizeof(err));
	assert_non_null(v.data);
	assert_int_equal(pb_report_make(&v, &r), 0);
	pb_report_sort(&r, PB_SORT_FUNC);
	return r;
}

static void expect(const struct pb_report_row *row, const char *name, uint64_t calls,
		   uint64_t total, uint64_t self, uint64_t min, uint64_t max)
{
	assert_string_equal(row->name, name);
	assert_int_equal(row->calls, calls);
	assert_int_equal(row->total, total);
	assert_int_equal(row->self, self);
	assert_int_equal(row->min, min);
	assert_int_equal(row->max, max);
}

/* Returns the number of calls in the Trace Event JSON. */
static uint64_t calls_in_chrome(struct pb_data *d)
{
	struct pb_view v = { .data = d, .out = &out, .to = UINT64_MAX };
	uint64_t calls = 0;

	assert_int_equal(pb_view_chrome(&v), 0);
	for (const char *p = written(); (p = strstr(p, "\"ph\":\"X\"")); p++)
		calls++;
	return calls;
}

static void test_recursion(void **state)
{
	struct pb_report r;
	struct pb_data *d;

	gen_begin(&g, dir, "function_graph", "x86-tsc");	/* two ticks are one ns */
	gen_chunk(&g, 1, 100, 0, 1000);
	gen_entry(&g, 1, 2000);
	gen_entry(&g, 2, 2100);
	gen_entry(&g, 1, 2200);
	gen_leaf(&g, 1, 2300, 2400);
	gen_leaf(&g, 2, 2450, 2470);
	gen_exit(&g, 1, 2600);
	gen_exit(&g, 2, 2700);
	gen_exit(&g, 1, 3000);
	gen_leaf(&g, 1, 3100, 3200);
	gen_chunk_write(&g);
	gen_end(&g, 1ull << 40);
	r = sums(&d);
	assert_int_equal(r.nr, 2);
	/* total is the ticks of the outermost calls, 2000-3000 and 3100-3200; self is 400 + 280 +
	 * 100 + 100 ticks */
	expect(&r.rows[0], "site:1", 4, 550, 440, 50, 500);
	/* total is the ticks 2100-2700; self is 200 + 20 ticks */
	expect(&r.rows[1], "site:2", 2, 300, 110, 10, 300);
	pb_report_free(&r);
	pb_data_close(d);
}

/* Writes a reading of the clocks. The machine has been awake for `awake` s, and has slept for
 * `asleep` s. */
static void reading(uint64_t awake, uint64_t asleep)
{
	const uint64_t s = 1000000000;
	struct pb_meta_clock c = {
		.tsc = GEN_START + 2 * (awake + asleep) * s, .monotonic = 100 * s + awake * s,
		.monotonic_raw = 200 * s + awake * s, .boottime = 300 * s + (awake + asleep) * s,
		.realtime = 1700000000 * s + (awake + asleep) * s,
	};

	gen_meta(&g, PB_META_CLOCK, &c, sizeof(c), NULL);
}

/* The machine sleeps for an hour. The time of a call has no part of the sleep, in any view. The
 * clock stands still from 15 s to 3615 s after the start. */
static void test_slept(void **state)
{
	const uint64_t s = 2000000000;
	struct pb_meta_end meta_end = { .threads = 1 };
	struct pb_view v = { .out = &out, .to = UINT64_MAX, .min_ns = 25 * (s / 2) };
	struct pb_report r;
	struct pb_tree t;
	struct pb_data *d;

	gen_begin(&g, dir, "function_graph", "mono");
	gen_chunk(&g, 1, 100, 0, GEN_START);
	gen_entry(&g, 1, GEN_START + 1 * s);
	gen_entry(&g, 2, GEN_START + 2 * s);
	gen_long(&g, 3, GEN_START + 12 * s, GEN_START + 3617 * s);
	gen_exit(&g, 2, GEN_START + 3622 * s);
	gen_exit(&g, 1, GEN_START + 3629 * s);
	gen_chunk_write(&g);
	reading(10, 0);
	reading(20, 3600);
	reading(30, 3600);
	gen_meta(&g, PB_META_END, &meta_end, sizeof(meta_end), NULL);
	gen_close(&g);

	r = sums(&d);
	assert_int_equal(r.nr, 3);
	expect(&r.rows[0], "site:1", 1, 28000000000, 8000000000, 28000000000, 28000000000);
	expect(&r.rows[1], "site:2", 1, 20000000000, 15000000000, 20000000000, 20000000000);
	expect(&r.rows[2], "site:3", 1, 5000000000, 5000000000, 5000000000, 5000000000);
	pb_report_free(&r);

	/* of these calls, one took at least 25 s */
	v.data = d;
	assert_int_equal(pb_report_make(&v, &r), 0);
	assert_int_equal(r.nr, 1);
	expect(&r.rows[0], "site:1", 1, 28000000000, 28000000000, 28000000000, 28000000000);
	pb_report_free(&r);

	v.min_ns = 0;
	assert_int_equal(pb_tree_make(&t, &v), 0);
	assert_int_equal(t.nr, 4);
	for (uint32_t i = 1; i < t.nr; i++)
		assert_int_equal(pb_clock_span(&d->clock, t.nodes[i].total),
				 i == 1 ? 28000000000 : i == 2 ? 20000000000 : 5000000000);
	pb_tree_free(&t);
	pb_data_close(d);
}

/* Two threads are in the same functions at the same time. A call is recursive only if its function
 * is already open on the same stack. So no call here is recursive, and all times are added up. With
 * `shared`, both threads make their inner call on a third stack. */
static void test_threads(void **state)
{
	struct pb_report r;
	struct pb_data *d;

	for (int shared = 0; shared < 2; shared++) {
		gen_begin(&g, dir, "function_graph", "x86-tsc");
		for (uint32_t t = 0; t < 2; t++) {
			gen_chunk(&g, 1 + t, 100 + t, 0, 1000 + t);
			gen_entry(&g, 1, 2000 + 10 * t);
			if (shared) {
				gen_ext1(&g, PB_EXT_STACK, 0, 0, 55);
				gen_leaf(&g, 3, 2100 + 200 * t, 2200 + 200 * t);
				gen_ext1(&g, PB_EXT_STACK, 0, 0, 0);
			} else {
				gen_leaf(&g, 3, 2100 + 10 * t, 2200 + 10 * t);
			}
			gen_exit(&g, 1, 3000 + 10 * t);
			gen_chunk_write(&g);
		}
		gen_end(&g, 1ull << 40);
		r = sums(&d);
		assert_int_equal(r.by_time, shared);
		assert_int_equal(r.nr, 2);
		expect(&r.rows[0], "site:1", 2, 1000, shared ? 1000 : 900, 500, 500);
		expect(&r.rows[1], "site:3", 2, 100, 100, 50, 50);
		pb_report_free(&r);
		pb_data_close(d);
	}
}

/* Without a clock, no call's time is known. */
static void test_no_clock(void **state)
{
	struct pb_report r;
	struct pb_data *d;

	gen_begin(&g, dir, "function_graph", "none");
	gen_chunk(&g, 1, 100, 0, 1);
	gen_entry(&g, 1, 1);
	gen_leaf(&g, 2, 1, 1);
	gen_exit(&g, 1, 1);
	gen_chunk_write(&g);
	gen_end(&g, 1ull << 40);
	r = sums(&d);
	assert_int_equal(r.nr, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(r.rows[i].calls, 1);
		assert_int_equal(r.rows[i].timed, 0);
	}
	pb_report_free(&r);
	pb_data_close(d);
}

/* Counts calls whose return isn't recorded. The counts must stay right when the tree grows and its
 * nodes move. */
static void test_tree_grows(void **state)
{
	enum { SITES = 20000, PER_CHUNK = 1000 };
	struct pb_view v = { .out = &out, .to = UINT64_MAX };
	uint64_t calls = 0;
	struct pb_tree t;
	char err[5000];

	gen_begin(&g, dir, "function_graph", "x86-tsc");
	for (uint32_t i = 0; i < SITES; i++) {
		if (i % PER_CHUNK == 0)
			gen_chunk(&g, 1, 100, i / PER_CHUNK, 1000 + i);
		gen_ext(&g, PB_EXT_CALL, 1 + i, 1000 + i);
		if (i % PER_CHUNK == PER_CHUNK - 1)
			gen_chunk_write(&g);
	}
	gen_end(&g, 1ull << 40);
	v.data = pb_data_open(dir, 0, err, sizeof(err));
	assert_non_null(v.data);
	assert_int_equal(pb_tree_make(&t, &v), 0);
	assert_int_equal(t.nr, 1 + SITES);
	for (uint32_t i = 1; i < t.nr; i++)
		calls += t.nodes[i].calls == 1;
	assert_int_equal(calls, SITES);
	pb_tree_free(&t);
	pb_data_close(v.data);
}

/* The metadata claims more functions than the module has. The sites of the missing functions are
 * shown as "site:N", even if the site's number N is very high. */
static void test_claimed_functions(void **state)
{
	static const char *const names[] = { "one", "two" };
	struct pb_meta_module m = {
		.image = 1, .module = 1, .pid = 100, .first_site = 1, .nr_funcs = 16 << 20,
	};
	struct pb_report r;
	struct pb_data *d;

	gen_begin(&g, dir, "function_graph", "x86-tsc");
	gen_image(&g, 1, 100, "/usr/bin/victim");
	gen_module(&g, 2, 1, 100, 1, 0, names, 2);
	gen_meta(&g, PB_META_MODULE, &m, sizeof(m), "/usr/bin/victim");
	gen_chunk(&g, 1, 100, 0, 1000);
	gen_leaf(&g, 2, 2300, 2400);
	gen_leaf(&g, 3, 2400, 2500);
	gen_leaf(&g, PB_MAX_SITES - 1, 2500, 2600);
	gen_chunk_write(&g);
	gen_end(&g, 1ull << 40);
	r = sums(&d);
	assert_int_equal(r.nr, 3);
	expect(&r.rows[0], "site:1048575", 1, 50, 50, 50, 50);
	expect(&r.rows[1], "site:3", 1, 50, 50, 50, 50);
	expect(&r.rows[2], "two", 1, 50, 50, 50, 50);
	pb_report_free(&r);
	pb_data_close(d);
}

/* A thread came back to its own stack, but the record of the change of stacks found no room. So the
 * records that follow seem to belong to the other stack. If a call ends that was open on the
 * thread's own stack, the reader still finds the call, because it has seen the call begin. Each
 * call is counted once and shown once. */
static void test_missed_stack(void **state)
{
	struct pb_report r;
	struct pb_data *d;

	gen_begin(&g, dir, "function_graph", "x86-tsc");
	gen_chunk(&g, 1, 101, 0, 1000);
	gen_entry(&g, 1, 1010);
	gen_entry(&g, 2, 1020);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, 77);
	gen_entry(&g, 3, 1100);
	gen_exit(&g, 2, 1200);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, 77);
	gen_exit(&g, 3, 1300);
	gen_chunk_write(&g);
	/* in this chunk, the call that ends is in the chunk's list of open calls */
	gen_chunk(&g, 1, 101, 1, 1300);
	g.head.missed = 1;
	g.head.stack = 78;
	gen_ext1(&g, PB_EXT_OPEN, 1, 0, 1010);
	gen_leaf(&g, 4, 1400, 1410);
	gen_exit(&g, 1, 1500);
	gen_chunk_write(&g);
	gen_end(&g, 1ull << 40);
	r = sums(&d);
	assert_int_equal(r.nr, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(r.rows[i].calls, 1);
	assert_int_equal(r.totals.missed, 1);
	assert_int_equal(calls_in_chrome(d), r.calls);
	pb_report_free(&r);
	pb_data_close(d);
}

/* Reads all that comes from fd. Exits with 0 if this is `want` bytes. */
static void read_slowly(int fd, size_t want)
{
	char buf[1000];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		want -= (size_t)n;
	_exit(want != 0);
}

/* Another process may make stdout non-blocking. All output must still be written. */
static void test_nonblocking(void **state)
{
	const size_t lines = 100000;
	int p[2], status;
	pid_t pid;

	assert_int_equal(pipe2(p, O_NONBLOCK), 0);
	pid = fork();
	if (!pid) {
		close(p[1]);
		fcntl(p[0], F_SETFL, 0);
		read_slowly(p[0], lines * 10);
	}
	close(p[0]);
	out.fd = p[1];
	out.begun = true;
	for (size_t i = 0; i < lines; i++)
		pb_out_str(&out, "123456789\n");
	pb_out_flush(&out);
	close(p[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(out.error, 0);
	assert_int_equal(status, 0);
	out.fd = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json), cmocka_unit_test(test_csv),
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_times),
		cmocka_unit_test(test_recursion), cmocka_unit_test(test_no_clock),
		cmocka_unit_test(test_threads), cmocka_unit_test(test_claimed_functions),
		cmocka_unit_test(test_missed_stack), cmocka_unit_test(test_tree_grows),
		cmocka_unit_test(test_nonblocking), cmocka_unit_test(test_slept),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
