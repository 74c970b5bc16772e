/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the limit of lines of `live`, and its account of the calls that it shows. The clock is the
 * test's own, so the time of the machine doesn't count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../recordings/gen_data.h"
#include "../test_dir.h"
#include "reader/drain.h"
#include "reader/open_chunks.h"
#include "view/live_text.h"

#define LINES		10
#define ROUND_NS	100000000ull
#define ROUNDS		40
#define PER_CHUNK	100

static struct gen g;
static struct pb_drain drain;
static struct pb_open_chunks chunks;
static struct pb_follow *f;
static struct pb_live_text live;
static struct pb_out out;
static char text[1 << 20];
static uint64_t clock_ns;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	*ts = (struct timespec){ (time_t)(clock_ns / 1000000000), (long)(clock_ns % 1000000000) };
	return 0;
}

static void start(uint32_t lines)
{
	char err[5000];

	drain = (struct pb_drain){ .bytes = sizeof(struct pb_data_header) };
	chunks = (struct pb_open_chunks){ .drain = &drain, .clock = GEN_START + (1ull << 40) };
	clock_ns = 1000 * ROUND_NS;
	gen_begin(&g, dir, "function_graph", "x86-tsc");
	/* the file `open` must be there when the recording is opened */
	gen_chunk(&g, 1, 100, 0, GEN_START);
	gen_chunk_copy(&g, 0);
	f = pb_follow_open(dir, PB_DEMANGLE_NO, 0, err, sizeof(err));
	assert_non_null(f);
	out = (struct pb_out){ .fd = memfd_create("out", MFD_CLOEXEC) };
	live = (struct pb_live_text){ .out = &out, .lines = lines };
}

static void write_chunk(void)
{
	struct stat st;

	gen_chunk_write(&g);
	assert_int_equal(fstat(g.chunks, &st), 0);
	drain.bytes = (uint64_t)st.st_size;
}

static void make_round(const struct pb_open_chunks *o)
{
	assert_int_equal(pb_follow_update(f, o, true), 0);
	assert_int_equal(pb_live_text_round(&live, f), 0);
	clock_ns += ROUND_NS;
}

/* Reads what was printed. */
static void end(void)
{
	ssize_t n;

	pb_out_flush(&out);
	n = pread(out.fd, text, sizeof(text) - 1, 0);
	assert_true(n > 0);
	text[n] = 0;
	close(out.fd);
	pb_live_text_free(&live);
	pb_follow_close(f);
	gen_close(&g);
}

/* Returns how often the text has `what`. */
static unsigned occurrences(const char *what)
{
	unsigned nr = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		nr++;
	return nr;
}

/* Every other round finds calls. The other rounds have time for the line that says how many calls
 * were left out. */
static void limit_of_lines(void **state)
{
	unsigned lines = 0;

	start(LINES);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t at = GEN_START + 100000 * i;

		if (i % 2 == 0) {
			gen_chunk(&g, 1, 100, i / 2, at);
			for (unsigned n = 0; n < PER_CHUNK; n++)
				gen_leaf(&g, 1, at + 10 * n + 1, at + 10 * n + 5);
			write_chunk();
		}
		make_round(&chunks);
	}
	end();
	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		lines += *line != '#';
	/* at most LINES lines are saved up, and each second of the rounds earns LINES more */
	assert_in_range(lines, LINES, LINES + LINES * (ROUNDS - 1) * ROUND_NS / 1000000000);
}

/* The entries of a deep stack are left out, and not all of its calls are listed at the end. */
static void open_calls(void **state)
{
	unsigned listed;
	char wanted[80];

	start(1);
	gen_chunk(&g, 1, 100, 0, GEN_START);
	for (unsigned i = 0; i < PER_CHUNK; i++)
		gen_entry(&g, 1, GEN_START + i + 1);
	write_chunk();
	make_round(&chunks);
	make_round(NULL);
	pb_live_text_end(&live, f);
	end();
	listed = occurrences("  since ");
	assert_in_range(listed, 1, PER_CHUNK - 1);
	snprintf(wanted, sizeof(wanted), "# %u calls shown, %u left out;", listed,
		 PER_CHUNK - listed);
	assert_non_null(strstr(text, wanted));
}

static void fill(uint64_t seq, uint32_t site)
{
	uint64_t at = GEN_START + 100000 * seq;

	gen_chunk(&g, 1, 100, seq, at);
	for (unsigned n = 0; n < PER_CHUNK; n++)
		gen_leaf(&g, site, at + 10 * n + 1, at + 10 * n + 5);
}

/* An interrupted call holds back the last records of a chunk for so long that live goes on without
 * them. When they come, they are shown. */
static void late_records(void **state)
{
	struct pb_open_chunk slot;

	start(0);
	fill(0, 1);
	gen_chunk_copy(&g, PER_CHUNK / 2);
	slot = (struct pb_open_chunk){ .head = g.head, .latest = g.last, .last = g.last };
	chunks.slots = &slot;
	chunks.nr_slots = 1;
	make_round(&chunks);
	fill(1, 2);
	write_chunk();
	for (unsigned i = 0; i < ROUNDS; i++) {
		drain.passes++;
		make_round(&chunks);
	}
	fill(0, 1);
	write_chunk();
	chunks.nr_slots = 0;
	make_round(&chunks);
	make_round(NULL);
	pb_live_text_end(&live, f);
	end();
	assert_int_equal(occurrences("site:1();"), PER_CHUNK);
	assert_int_equal(occurrences("site:1(); /* shown late */"), PER_CHUNK / 2);
}

static void read_clocks(uint64_t tsc, uint64_t ns)
{
	struct pb_meta_clock c = {
		.tsc = tsc, .monotonic = 100000000000 + ns, .monotonic_raw = 200000000000 + ns,
	};

	gen_meta(&g, PB_META_CLOCK, &c, sizeof(c), NULL);
}

/* A reading of the clocks shows that the times after the reading before it were too late. The times
 * of the lines must not decrease, and must be right again after some time. */
static void corrected_clock(void **state)
{
	unsigned long long s, us, latest = 0;
	unsigned lines = 0;

	start(0);
	live.flags = PB_FG_ABSTIME;
	read_clocks(GEN_START + 10000, 10000);
	fill(0, 1);			/* at 0 us */
	write_chunk();
	fill(1, 1);			/* at 100 us */
	write_chunk();
	make_round(&chunks);
	read_clocks(GEN_START + 210000, 60000);
	fill(2, 1);			/* at 57 us: without the new reading, it would be 200 us */
	write_chunk();
	fill(3, 1);			/* at 82 us */
	write_chunk();
	fill(4, 1);			/* at 107 us */
	write_chunk();
	make_round(&chunks);
	make_round(NULL);
	end();
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		if (sscanf(line, "%llu.%llu |", &s, &us) != 2)
			continue;
		assert_in_range(s * 1000000 + us, latest, UINT64_MAX);
		latest = s * 1000000 + us;
		lines++;
	}
	assert_int_equal(lines, 5 * PER_CHUNK);
	assert_in_range(latest, 107, 108);
}

/* A thread's records may go back in time, for example if a handler has made calls before the
 * interrupted call was recorded. Each line has its own time. */
static void earlier_call(void **state)
{
	start(0);
	live.flags = PB_FG_ABSTIME;
	gen_chunk(&g, 1, 100, 0, GEN_START);
	gen_leaf(&g, 1, GEN_START + 50000, GEN_START + 60000);
	gen_leaf(&g, 2, GEN_START + 40000, GEN_START + 70000);
	gen_leaf(&g, 3, GEN_START + 80000, GEN_START + 90000);
	write_chunk();
	make_round(&chunks);
	make_round(NULL);
	end();
	assert_non_null(strstr(text, "0.000050 |  site:1();\n    0.000040 |  site:2();\n"
			       "    0.000080 |  site:3();\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limit_of_lines), cmocka_unit_test(open_calls),
		cmocka_unit_test(late_records), cmocka_unit_test(corrected_clock),
		cmocka_unit_test(earlier_call),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
