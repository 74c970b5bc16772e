/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Scenarios: data directories with names. A time is written as T(nanoseconds since the start). */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "gen_data.h"

#define T(ns) (GEN_START + 2ull * (ns))

enum { MAIN = 1, WORK, HELPER, PARSE, THROWS, CPP, RUST, FIB, NR_FUNCS };
static const char *const names[] = {
	"main", "work", "helper", "parse", "throws", "_ZN2ns4pairIiE5firstEi",
	"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "fib",
};

static void begin(struct gen *g, const char *dir, const char *tracer, const char *clock)
{
	gen_begin(g, dir, tracer, clock);
	gen_image(g, 1, 100, "/usr/bin/victim");
	gen_module(g, 1, 1, 100, 1, 0x555555554000, names, pb_array_size(names));
}

static void end(struct gen *g, uint64_t ns)
{
	struct pb_meta_exit e = { .pid = 100, .status = 0 };

	gen_meta(g, PB_META_EXIT, &e, sizeof(e), NULL);
	gen_end(g, T(ns));
}

/* Calls that begin and end as usual, and a recursion. The durations are chosen so that views show
 * each overhead mark. */
static void basic(const char *dir, uint64_t n)
{
	static struct gen g;
	uint64_t t;

	begin(&g, dir, "function_graph", "x86-tsc");
	gen_thread(&g, 1, 100, 100, "victim", 0, 0);
	gen_chunk(&g, 1, 100, 0, T(0));
	gen_entry(&g, MAIN, T(1000));
	gen_leaf(&g, HELPER, T(1100), T(1223));
	gen_entry(&g, WORK, T(1300));
	gen_leaf(&g, CPP, T(1400), T(13400));
	gen_leaf(&g, RUST, T(13500), T(135000));
	gen_leaf(&g, PARSE, T(135100), T(1200000));
	gen_leaf(&g, HELPER, T(1200100), T(21200000));
	gen_leaf(&g, HELPER, T(21300000), T(181300000));
	gen_leaf(&g, HELPER, T(181400000), T(3181400000));
	gen_exit(&g, WORK, T(3181500000));
	t = 3181500000;
	for (int i = 0; i < 3; i++)
		gen_entry(&g, FIB, T(t += 100));
	gen_leaf(&g, FIB, T(t + 50), T(t + 90));
	for (int i = 0; i < 3; i++)
		gen_exit(&g, FIB, T(t += 100));
	gen_exit(&g, MAIN, T(t += 100));
	gen_chunk_write(&g);
	end(&g, t + 1000);
}

/* Calls that an exception or longjmp ends. One call with an ENTRY and one leaf have an END record.
 * Two other calls have no record of their end, so they end at an outer call's EXIT. Also a call
 * whose return isn't hooked, and an EXIT of a call that has no ENTRY. */
static void skipped(const char *dir, uint64_t n)
{
	static struct gen g;

	begin(&g, dir, "function_graph", "x86-tsc");
	gen_thread(&g, 1, 100, 100, "victim", 0, 2);
	gen_chunk(&g, 1, 100, 0, T(0));
	gen_entry(&g, MAIN, T(1000));
	gen_entry(&g, WORK, T(1100));
	gen_entry(&g, THROWS, T(1200));
	gen_leaf(&g, HELPER, T(1300), T(1350));
	gen_ext1(&g, PB_EXT_END, PARSE, T(1500), T(1400));
	gen_ext1(&g, PB_EXT_END, THROWS, T(1500), PB_END_ENTRY);
	gen_exit(&g, WORK, T(2000));
	gen_ext(&g, PB_EXT_CALL, CPP, T(2100));
	gen_entry(&g, WORK, T(2200));
	gen_entry(&g, THROWS, T(2300));
	gen_leaf(&g, HELPER, T(2400), T(2450));
	gen_exit(&g, MAIN, T(3000));
	gen_exit(&g, PARSE, T(3100));
	gen_chunk_write(&g);
	end(&g, 4000);
}

/* A recursive function whose outermost call has no known time: once because an exception ends the
 * call, and once because the call is open at the end of the data. */
static void recursion(const char *dir, uint64_t n)
{
	static struct gen g;

	begin(&g, dir, "function_graph", "x86-tsc");
	gen_thread(&g, 1, 100, 100, "victim", 0, 0);
	gen_thread(&g, 2, 100, 101, "worker", 0, 0);
	gen_chunk(&g, 1, 100, 0, T(0));
	gen_entry(&g, MAIN, T(1000));
	for (int i = 0; i < 2; i++) {
		uint64_t t = 2000 + 2000 * i;

		gen_entry(&g, FIB, T(t));
		gen_entry(&g, WORK, T(t + 100));
		gen_entry(&g, FIB, T(t + 200));
		gen_leaf(&g, FIB, T(t + 300), T(t + 400));
		gen_exit(&g, FIB, T(t + 500));
		gen_exit(&g, WORK, T(t + 600));
		gen_leaf(&g, FIB, T(t + 700), T(t + 750));
		if (!i)
			gen_ext1(&g, PB_EXT_END, FIB, T(t + 900), PB_END_ENTRY);
	}
	gen_chunk_write(&g);
	gen_chunk(&g, 2, 101, 0, T(2050));
	gen_entry(&g, FIB, T(2150));
	gen_leaf(&g, FIB, T(4250), T(4350));
	gen_exit(&g, FIB, T(4450));
	gen_chunk_write(&g);
	end(&g, 6000);
}

/* Calls that end by a tail call: a leaf, a call with callees, a call that jumps to an untraced
 * function, and calls that jump to their own function. */
static void tails(const char *dir, uint64_t n)
{
	static struct gen g;

	begin(&g, dir, "function_graph", "x86-tsc");
	gen_thread(&g, 1, 100, 100, "victim", 0, 0);
	gen_chunk(&g, 1, 100, 0, T(0));
	gen_entry(&g, MAIN, T(1000));
	gen_tail_leaf(&g, PARSE, T(1100), T(1150));
	gen_leaf(&g, HELPER, T(1160), T(1200));
	gen_entry(&g, WORK, T(1300));
	gen_leaf(&g, HELPER, T(1310), T(1390));
	gen_ext(&g, PB_EXT_TAIL, WORK, T(1400));
	gen_leaf(&g, HELPER, T(21500), T(31500));
	for (int i = 0; i < 3; i++)
		gen_tail_leaf(&g, FIB, T(32000 + 100 * i), T(32050 + 100 * i));
	gen_leaf(&g, FIB, T(32300), T(32350));
	gen_exit(&g, MAIN, T(40000));
	gen_ext(&g, PB_EXT_TAIL, RUST, T(41000));
	gen_chunk_write(&g);
	end(&g, 50000);
}

/* Records that are lost between chunks, an overwritten chunk, and records that are lost at the
 * end. */
static void lost(const char *dir, uint64_t n)
{
	static struct gen g;

	begin(&g, dir, "function_graph", "x86-tsc");
	gen_thread(&g, 1, 100, 100, "victim", 130, 0);
	gen_chunk(&g, 1, 100, 0, T(0));
	gen_entry(&g, MAIN, T(1000));
	gen_entry(&g, WORK, T(1100));
	gen_leaf(&g, HELPER, T(1200), T(1300));
	gen_chunk_write(&g);
	/* the end of WORK and the beginning of PARSE are among the lost records */
	gen_chunk(&g, 1, 100, 1, T(5000));
	g.head.lost = 123;
	g.head.depth = 2;
	gen_ext1(&g, PB_EXT_OPEN, MAIN, 0, T(1000));
	gen_ext1(&g, PB_EXT_OPEN, PARSE, 0, T(4000));
	gen_ext1(&g, PB_EXT_LOST, 0, 0, 123);
	gen_leaf(&g, HELPER, T(5200), T(5300));
	gen_exit(&g, PARSE, T(5400));
	gen_chunk_write(&g);
	/* chunk 2 was overwritten */
	gen_chunk(&g, 1, 100, 3, T(9000));
	g.head.lost = 123;
	g.head.depth = 1;
	gen_ext1(&g, PB_EXT_OPEN, MAIN, 0, T(1000));
	gen_leaf(&g, HELPER, T(9100), T(9200));
	gen_exit(&g, MAIN, T(9300));
	gen_chunk_write(&g);
	end(&g, 10000);
}

/* Two threads, a coroutine that moves from one thread to the other, and a forked child. */
static void threads(const char *dir, uint64_t n)
{
	static struct gen g;

	begin(&g, dir, "function_graph", "x86-tsc");
	gen_thread(&g, 1, 100, 100, "victim", 0, 0);
	gen_thread(&g, 2, 100, 101, "worker", 0, 0);
	gen_thread(&g, 3, 102, 102, "child", 0, 0);
	gen_chunk(&g, 1, 100, 0, T(0));
	gen_entry(&g, MAIN, T(1000));
	gen_leaf(&g, HELPER, T(1100), T(1200));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, 0x7000);
	gen_entry(&g, PARSE, T(1300));
	gen_leaf(&g, HELPER, T(1400), T(1450));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, 0);
	gen_leaf(&g, HELPER, T(2000), T(2100));
	gen_exit(&g, MAIN, T(5000));
	gen_chunk_write(&g);
	gen_chunk(&g, 2, 101, 0, T(1500));
	gen_entry(&g, WORK, T(1600));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, 0x7000);
	gen_leaf(&g, CPP, T(1700), T(1800));
	gen_exit(&g, PARSE, T(1900));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, 0);
	gen_leaf(&g, HELPER, T(2200), T(2300));
	gen_exit(&g, WORK, T(2400));
	gen_chunk_write(&g);
	gen_chunk(&g, 3, 102, 0, T(3000));
	g.head.pid = 102;
	g.head.depth = 1;
	gen_ext1(&g, PB_EXT_OPEN, MAIN, 0, T(1000));
	gen_leaf(&g, RUST, T(3100), T(3200));
	gen_exit(&g, MAIN, T(3300));
	gen_chunk_write(&g);
	end(&g, 6000);
}

/* The thread comes to a new stack from its own one. But first, stacks are found to be gone, and the
 * calls that were open on them end. */
static void gone_stacks(const char *dir, uint64_t n)
{
	const uint64_t own = 1ull << 63 | 1, one = 0x100, two = 0x200, new = 0x300;
	static struct gen g;

	begin(&g, dir, "function_graph", "x86-tsc");
	gen_thread(&g, 1, 100, 100, "victim", 0, 0);
	gen_chunk(&g, 1, 100, 0, T(0));
	g.head.stack = own;
	gen_entry(&g, MAIN, T(1000));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, one);
	gen_entry(&g, PARSE, T(1100));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, two);
	gen_entry(&g, CPP, T(1200));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, own);
	gen_entry(&g, WORK, T(1300));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, one);
	gen_ext1(&g, PB_EXT_END, PARSE, T(1400), PB_END_ENTRY);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, two);
	gen_ext1(&g, PB_EXT_END, CPP, T(1400), PB_END_ENTRY);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, new);
	gen_entry(&g, RUST, T(1400));
	gen_leaf(&g, HELPER, T(1500), T(1510));
	gen_exit(&g, RUST, T(1600));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, own);
	gen_exit(&g, WORK, T(1700));
	gen_exit(&g, MAIN, T(1800));
	gen_chunk_write(&g);
	end(&g, 2000);
}

/* Several stacks. A handler leaves its alternate stack by a jump. A handler interrupts a coroutine.
 * Another coroutine has an open call: the call is found to be gone after the thread has returned to
 * its own stack. */
static void stacks(const char *dir, uint64_t n)
{
	const uint64_t own = 1ull << 63 | 1, alt = 0x100, co = 0x200, other = 0x300;
	static struct gen g;

	begin(&g, dir, "function_graph", "x86-tsc");
	gen_thread(&g, 1, 100, 100, "victim", 0, 0);
	gen_chunk(&g, 1, 100, 0, T(0));
	g.head.stack = own;
	gen_entry(&g, MAIN, T(1000));
	gen_entry(&g, WORK, T(1100));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, alt);
	gen_entry(&g, PARSE, T(1200));
	gen_leaf(&g, HELPER, T(1300), T(1350));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, own);
	gen_ext1(&g, PB_EXT_END, WORK, T(1400), PB_END_ENTRY);
	gen_leaf(&g, HELPER, T(1450), T(1460));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, co);
	gen_entry(&g, CPP, T(1500));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, alt);
	gen_ext1(&g, PB_EXT_END, PARSE, T(1600), PB_END_ENTRY);
	gen_entry(&g, PARSE, T(1610));
	gen_leaf(&g, HELPER, T(1620), T(1630));
	gen_exit(&g, PARSE, T(1640));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, co);
	gen_leaf(&g, HELPER, T(1700), T(1710));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, other);
	gen_leaf(&g, RUST, T(1800), T(1810));
	gen_entry(&g, RUST, T(1820));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, own);
	gen_entry(&g, WORK, T(1900));
	/* the call that is open on the stack `other` was found to be gone */
	gen_ext1(&g, PB_EXT_END, RUST, T(1950), PB_END_ENTRY);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, co);
	gen_exit(&g, CPP, T(2000));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, own);
	gen_exit(&g, WORK, T(2100));
	gen_exit(&g, MAIN, T(2200));
	gen_chunk_write(&g);
	end(&g, 3000);
}

/* Two coroutines. The thread switches from the first to the second, without an event on its own
 * stack between. By then, the first coroutine has no open call. */
static void coroutines(const char *dir, uint64_t n)
{
	const uint64_t own = 1ull << 63 | 1, first = 0x200, second = 0x300;
	static struct gen g;

	begin(&g, dir, "function_graph", "x86-tsc");
	gen_thread(&g, 1, 100, 100, "victim", 0, 0);
	gen_chunk(&g, 1, 100, 0, T(0));
	g.head.stack = own;
	gen_entry(&g, MAIN, T(1000));
	gen_leaf(&g, HELPER, T(1100), T(1150));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, first);
	gen_leaf(&g, PARSE, T(1200), T(1250));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, second);
	gen_entry(&g, WORK, T(1300));
	gen_leaf(&g, CPP, T(1400), T(1450));
	gen_exit(&g, WORK, T(1500));
	gen_ext1(&g, PB_EXT_STACK, 0, 0, own);
	gen_exit(&g, MAIN, T(1600));
	gen_leaf(&g, FIB, T(1700), T(1750));
	gen_chunk_write(&g);
	end(&g, 2000);
}

/* The recorder was killed. There are open calls, a running leaf, words that were never written, and
 * a cut-off chunk. The meta file has no END record. */
static void killed(const char *dir, uint64_t n)
{
	static struct gen g;
	struct pb_meta_exit e = { .pid = 100, .status = 9 };

	begin(&g, dir, "function_graph", "x86-tsc");
	gen_meta(&g, PB_META_EXIT, &e, sizeof(e), NULL);
	gen_chunk(&g, 1, 100, 0, T(0));
	g.head.state = PB_CHUNK_OPEN;
	g.head.leaf_site = HELPER;
	g.head.leaf_start = T(1500);
	gen_entry(&g, MAIN, T(1000));
	gen_word(&g, 0);
	gen_entry(&g, WORK, T(1100));
	gen_leaf(&g, PARSE, T(1200), T(1300));
	gen_word(&g, 0);
	gen_chunk_write(&g);
	gen_chunk(&g, 2, 101, 0, T(1200));
	gen_leaf(&g, CPP, T(1250), T(1260));
	gen_leaf(&g, CPP, T(1270), T(1280));
	gen_chunk_write(&g);
	if (ftruncate(g.chunks, lseek(g.chunks, 0, SEEK_CUR) - 5))
		err(1, "ftruncate");
	gen_close(&g);
}

/* The recorder ended normally, but the file of chunks is cut off. */
static void damaged(const char *dir, uint64_t n)
{
	static struct gen g;

	begin(&g, dir, "function_graph", "x86-tsc");
	gen_thread(&g, 1, 100, 100, "victim", 0, 0);
	gen_chunk(&g, 1, 100, 0, T(0));
	gen_leaf(&g, HELPER, T(1000), T(1100));
	gen_leaf(&g, HELPER, T(1200), T(1300));
	gen_chunk_write(&g);
	if (ftruncate(g.chunks, lseek(g.chunks, 0, SEEK_CUR) - 5))
		err(1, "ftruncate");
	end(&g, 2000);
}

/* Two buffers. One thread wrote to both, another thread only to the second. */
static void buffers(const char *dir, uint64_t n)
{
	static struct gen g;

	begin(&g, dir, "function_graph", "x86-tsc");
	gen_thread(&g, 1, 100, 100, "victim", 5, 0);
	gen_thread(&g, 2, 100, 101, "worker", 0, 0);
	gen_chunk(&g, 1, 100, 0, T(0));
	gen_entry(&g, MAIN, T(1000));
	gen_leaf(&g, HELPER, T(1100), T(1200));
	gen_exit(&g, MAIN, T(2000));
	gen_chunk_write(&g);
	for (uint32_t serial = 1; serial <= 2; serial++) {
		gen_chunk(&g, serial, 99 + serial, 0, T(1100));
		g.head.buffer = 7;
		gen_leaf(&g, PARSE, T(1100 + serial), T(1200));
		gen_chunk_write(&g);
	}
	end(&g, 3000);
}

static void function_calls(const char *dir, const char *clock)
{
	static struct gen g;

	begin(&g, dir, "function", clock);
	gen_thread(&g, 1, 100, 100, "victim", 7, 0);
	gen_chunk(&g, 1, 100, 0, T(0));
	gen_ext1(&g, PB_EXT_FUNC, MAIN, T(1000), pb_ext_address(0x7ffff7000123));
	gen_ext1(&g, PB_EXT_FUNC, WORK, T(2000), pb_ext_address(0x555555555010));
	gen_ext1(&g, PB_EXT_FUNC, CPP, T(3500), pb_ext_address(0x555555555110));
	gen_ext1(&g, PB_EXT_FUNC, HELPER, T(1000000500), pb_ext_address(0x555555558000));
	gen_chunk_write(&g);
	end(&g, 2000000000);
}

static void function(const char *dir, uint64_t n)
{
	function_calls(dir, "mono");
}

/* A recording of the function tracer without a clock */
static void function_untimed(const char *dir, uint64_t n)
{
	function_calls(dir, "none");
}

static void call_main(struct gen *g, uint32_t serial, uint32_t image, uint32_t tid, uint64_t start,
		      uint64_t end)
{
	gen_chunk(g, serial, tid, 0, T(start));
	g->head.image = image;
	gen_entry(g, MAIN, T(start));
	gen_leaf(g, HELPER, T(start + 100), T(start + 200));
	if (end)
		gen_exit(g, MAIN, T(end));
	gen_chunk_write(g);
}

/* Two processes with the PID 100, which run at the same time. The first has two threads and makes
 * an exec; the second has two threads, and a call that is open at the end. */
static void same_pids(const char *dir, uint64_t n)
{
	static struct gen g;

	begin(&g, dir, "function_graph", "x86-tsc");
	for (uint32_t image = 2; image <= 3; image++) {
		gen_image(&g, image, 100, "/usr/bin/victim");
		gen_module(&g, image, 1, 100, 1, 0x555555554000, names, pb_array_size(names));
	}
	gen_thread(&g, 1, 100, 100, "first", 0, 0);
	gen_thread(&g, 2, 100, 101, "worker1", 0, 0);
	gen_thread(&g, 3, 100, 100, "second", 3, 0);
	gen_thread(&g, 4, 100, 101, "worker2", 0, 0);
	gen_thread(&g, 5, 100, 100, "exec", 0, 0);
	call_main(&g, 1, 1, 100, 1000, 5000);
	call_main(&g, 2, 1, 101, 1500, 4000);
	call_main(&g, 3, 2, 100, 2000, 0);
	call_main(&g, 4, 2, 101, 2500, 7000);
	call_main(&g, 5, 3, 100, 6000, 9000);
	end(&g, 10000);
}

/* Two forked children of one process, each with the PID 1 in its own PID namespace. Both have two
 * threads, which run at the same time. */
static void same_pids_forked(const char *dir, uint64_t n)
{
	static struct gen g;

	begin(&g, dir, "function_graph", "x86-tsc");
	gen_thread(&g, 1, 1, 1, "first", 0, 0);
	gen_thread(&g, 2, 1, 2, "worker1", 0, 0);
	gen_thread(&g, 3, 1, 1, "second", 0, 0);
	gen_thread(&g, 4, 1, 2, "worker2", 0, 0);
	gen_thread(&g, 5, 1, 2, "later1", 0, 0);
	call_main(&g, 1, 1, 1, 1000, 9000);
	call_main(&g, 2, 1, 2, 1500, 4000);
	call_main(&g, 3, 1, 1, 2000, 9500);
	call_main(&g, 4, 1, 2, 2500, 9200);
	call_main(&g, 5, 1, 2, 5000, 8000);
	end(&g, 10000);
}

/* Writes the chunks of one thread with about n calls, which nest as in real programs. */
static void bench_calls(struct gen *g, uint64_t n, uint32_t serial, uint32_t threads)
{
	uint64_t t = T(1000) + serial * 7, seq = 0;

	gen_chunk(g, serial, 100 + serial, seq++, t);
	for (uint64_t i = 0; i < n;) {
		if (g->nr > 1900) {
			gen_chunk_write(g);
			gen_chunk(g, serial, 100 + serial, seq++, t);
		}
		gen_entry(g, 2 + i % 97, t += 60);
		gen_entry(g, 100 + i % 331, t += 60);
		for (int k = 0; k < 6; k++, t += 60)
			gen_leaf(g, 500 + (uint32_t)((i * 7 + (unsigned)k * 13) % 1409), t, t + 40);
		gen_exit(g, 100 + i % 331, t += 60);
		for (int k = 0; k < 4; k++, t += 60)
			gen_leaf(g, 450 + k, t, t + 40);
		gen_exit(g, 2 + i % 97, t += 60);
		i += 12;
	}
	gen_chunk_write(g);
}

static void bench_n(const char *dir, uint64_t n, uint32_t threads)
{
	static struct gen g;
	static char text[2000][32];
	const char *list[2000];

	for (int i = 0; i < 2000; i++) {
		snprintf(text[i], sizeof(text[i]), "function_%d", i);
		list[i] = text[i];
	}
	gen_begin(&g, dir, "function_graph", "x86-tsc");
	gen_image(&g, 1, 100, "/usr/bin/bench");
	gen_module(&g, 1, 1, 100, 1, 0x555555554000, list, 2000);
	for (uint32_t i = 1; i <= threads; i++)
		bench_calls(&g, n / threads, i, threads);
	gen_end(&g, T(n * 100));
}

static void bench(const char *dir, uint64_t n)
{
	bench_n(dir, n, 1);
}

static void bench_threads(const char *dir, uint64_t n)
{
	bench_n(dir, n, 8);
}

const char *const gen_scenarios[] = {
	"basic", "skipped", "recursion", "tails", "lost", "threads", "stacks", "coroutines",
	"killed", "damaged", "buffers", "function", "function_untimed", "same_pids",
	"same_pids_forked", "gone_stacks", "bench", "bench_threads", NULL
};

int gen_scenario(const char *name, const char *dir, uint64_t n)
{
	static void (*const make[])(const char *dir, uint64_t n) = {
		basic, skipped, recursion, tails, lost, threads, stacks, coroutines, killed,
		damaged, buffers, function, function_untimed, same_pids, same_pids_forked,
		gone_stacks, bench, bench_threads,
	};

	for (int i = 0; gen_scenarios[i]; i++)
		if (!strcmp(gen_scenarios[i], name)) {
			make[i](dir, n);
			return 0;
		}
	return -1;
}
