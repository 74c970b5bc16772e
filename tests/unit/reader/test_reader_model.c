/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests the decoder with a small model of the engine's writer. The model makes random calls,
 * returns, and jumps over several calls. Handlers interrupt the model after it has marked a call as
 * recorded, and before it writes the call's ENTRY. Some chunks are dropped, and some records get no
 * chunk. At each leaf, the decoder must see the same open calls as the model. The decoder must see
 * no call begin twice. If nothing was dropped, it must see each call begin.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test_dir.h"
#include "../recordings/gen_data.h"
#include "reader/stream.h"

#define SEEDS		1500
#define STEPS		400
#define MAX_DEPTH	60
#define ROOM		90		/* number of words in a chunk after its list of open
					 * calls */
#define MAX_LEAVES	(STEPS * 16)

static struct gen g;
static unsigned seed;

static unsigned chance(unsigned n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % n;
}

/* --- the writer ----------------------------------------------------------- */

struct call {
	uint64_t start;
	uint32_t site;
	bool emitted;		/* marked as recorded, before its ENTRY is written */
	bool written;		/* the ENTRY was written, or got no chunk */
};

/* The calls that must be open at a leaf. find() finds this row by `leaf`, the leaf's start. */
struct expected {
	uint64_t leaf;
	struct call open[MAX_DEPTH];
	unsigned depth;
};

static struct {
	struct call stack[MAX_DEPTH];
	unsigned depth, nesting;
	uint64_t now, last, seq, lost, lost_reported;
	bool in_chunk, keep, lossless;
	struct expected *expected;
	unsigned nr_expected, begun;
} w;

static void close_chunk(void)
{
	if (w.in_chunk && w.keep)
		gen_chunk_write(&g);
	w.in_chunk = false;
}

/* Returns false if no chunk is free now. */
static bool open_chunk(void)
{
	close_chunk();
	if (!w.lossless && !chance(6))
		return false;
	gen_chunk(&g, 1, 101, w.seq++, w.last);
	g.head.lost = w.lost;
	for (unsigned i = 0; i < w.depth; i++)
		if (w.stack[i].emitted) {
			gen_ext1(&g, PB_EXT_OPEN, w.stack[i].site, 0, w.stack[i].start);
			g.head.depth = i + 1;
		}
	g.last = w.last;
	if (w.lost != w.lost_reported)
		gen_ext1(&g, PB_EXT_LOST, 0, 0, w.lost - w.lost_reported);
	w.lost_reported = w.lost;
	w.in_chunk = true;
	w.keep = w.lossless || chance(4);
	return true;
}

static bool reserve(unsigned words)
{
	if ((!w.in_chunk || g.nr + words > ROOM + 2 * w.depth) && !open_chunk()) {
		w.lost++;
		return false;
	}
	return true;
}

static void step(void);
static void ret(void);

static void emit(struct call *c)
{
	unsigned depth = w.depth;

	c->emitted = true;
	if (w.nesting < 2 && !chance(8)) {	/* a handler runs and returns */
		w.nesting++;
		for (unsigned n = chance(40); n--;)
			if (w.depth > depth || chance(2))
				step();
		while (w.depth > depth)
			ret();
		w.nesting--;
	}
	if (reserve(1))
		gen_entry(&g, c->site, c->start);
	c->written = true;
	w.last = c->start;
}

static void call(void)
{
	if (w.depth == MAX_DEPTH)
		return;
	if (w.depth && !w.stack[w.depth - 1].emitted)
		emit(&w.stack[w.depth - 1]);
	w.stack[w.depth++] = (struct call){ .start = w.now += 1 + chance(5),
					    .site = 1 + chance(6) };
	w.begun++;
}

static void expect(uint64_t leaf)
{
	struct expected *e = &w.expected[w.nr_expected];

	if (!w.in_chunk || !w.keep || w.nr_expected == MAX_LEAVES)
		return;
	w.nr_expected++;
	e->leaf = leaf;
	e->depth = 0;
	for (unsigned i = 0; i < w.depth; i++)
		if (w.stack[i].emitted)
			e->open[e->depth++] = w.stack[i];
}

/* Reserves words for the end of a call. The reservation may open a chunk. If the call has an ENTRY,
 * the new chunk's list of open calls must still have the call, because the call's end follows the
 * list. */
static bool end_of(const struct call *c, unsigned words)
{
	bool room = c->emitted && reserve(words);

	w.depth--;
	return room || (!c->emitted && reserve(words));
}

static void ret(void)
{
	struct call c = w.stack[w.depth - 1];
	uint64_t end = w.now += 1 + chance(5);

	bool tail = !chance(4);

	if (!end_of(&c, 1 + (tail && !c.emitted)))
		return;
	if (c.emitted && tail)
		gen_ext(&g, PB_EXT_TAIL, c.site, end);
	else if (c.emitted)
		gen_exit(&g, c.site, end);
	else if (tail)
		gen_tail_leaf(&g, c.site, c.start, end);
	else
		gen_leaf(&g, c.site, c.start, end);
	if (!c.emitted)
		expect(c.start);
	w.last = end;
}

static void jump(unsigned depth)
{
	while (w.depth > depth) {
		struct call c = w.stack[w.depth - 1];

		w.now++;
		if (end_of(&c, 2)) {
			gen_ext1(&g, PB_EXT_END, c.site, w.now, c.emitted ? PB_END_ENTRY : c.start);
			w.last = w.now;
		}
	}
}

static unsigned floor_of_handler(void)
{
	/* a handler doesn't end the calls that it interrupted: the call whose ENTRY is being
	 * written and the calls around it */
	for (unsigned i = w.depth; i--;)
		if (w.stack[i].emitted && !w.stack[i].written)
			return i + 1;
	return 0;
}

static void step(void)
{
	unsigned bottom = floor_of_handler();

	if (w.depth > bottom && chance(2))
		ret();
	else if (w.depth > bottom + 1 && !chance(12))
		jump(bottom + chance(w.depth - bottom));
	else
		call();
}

/* --- the decoder ---------------------------------------------------------- */

static const struct expected *find(uint64_t leaf)
{
	for (unsigned i = 0; i < w.nr_expected; i++)
		if (w.expected[i].leaf == leaf)
			return &w.expected[i];
	return NULL;
}

/* The event must have all open calls in their order. Calls whose ENTRY is being written may be
 * missing. */
static void check_stack(const struct pb_event *ev)
{
	const struct expected *e = find(ev->start);
	unsigned seen = 0;

	assert_non_null(e);
	for (unsigned i = 0; i < e->depth; i++) {
		const struct call *c = &e->open[i];

		if (seen < ev->stack->depth && ev->stack->calls[seen].start == c->start &&
		    ev->stack->calls[seen].site == c->site)
			seen++;
		else if (c->written)
			fail_msg("at the leaf of %llu the call of %llu is missing",
				 (unsigned long long)ev->start, (unsigned long long)c->start);
	}
	if (seen != ev->stack->depth)
		fail_msg("at the leaf of %llu the call of %llu shouldn't be open",
			 (unsigned long long)ev->start,
			 (unsigned long long)ev->stack->calls[seen].start);
}

static bool begins(const struct pb_event *ev)
{
	return ev->kind == PB_EV_ENTRY || ev->kind == PB_EV_OPEN || ev->kind == PB_EV_LEAF ||
	       (ev->kind == PB_EV_END && !ev->call && ev->start);
}

static unsigned decode(unsigned number)
{
	static uint8_t begun[STEPS * 400];
	char err[5000];
	struct pb_data *d = pb_data_open(dir, 0, err, sizeof(err));
	struct pb_stream s;
	struct pb_event ev;
	unsigned calls = 0;

	assert_non_null(d);
	memset(begun, 0, sizeof(begun));
	assert_int_equal(pb_stream_open(&s, d, false, NULL, 0), 0);
	while (pb_stream_next(&s, &ev)) {
		if (ev.kind == PB_EV_LEAF)
			check_stack(&ev);
		if (!begins(&ev))
			continue;
		assert_true(ev.start > GEN_START && ev.start - GEN_START < sizeof(begun));
		if (begun[ev.start - GEN_START]++)
			fail_msg("seed %u: the call of %llu begins twice (event %d)", number,
				 (unsigned long long)ev.start, ev.kind);
		calls++;
	}
	pb_stream_close(&s);
	pb_data_close(d);
	return calls;
}

static void run(unsigned number, bool lossless)
{
	struct expected *expected = w.expected;

	seed = number;
	memset(&w, 0, sizeof(w));
	w.expected = expected;
	w.lossless = lossless;
	w.now = w.last = GEN_START;
	gen_begin(&g, dir, "function_graph", "x86-tsc");
	for (int i = 0; i < STEPS; i++)
		step();
	while (w.depth)
		ret();
	close_chunk();
	gen_end(&g, w.now + 1000);
	unsigned calls = decode(number);

	if (lossless)
		assert_int_equal(calls, w.begun);
}

static void test_nothing_missing(void **state)
{
	for (unsigned i = 1; i <= SEEDS / 10; i++)
		run(i, true);
}

static void test_gaps(void **state)
{
	for (unsigned i = 1; i <= SEEDS; i++)
		run(i, false);
}

static int set_up(void **state)
{
	w.expected = calloc(MAX_LEAVES, sizeof(*w.expected));
	return w.expected ? make_dir(state) : -1;
}

static int tear_down(void **state)
{
	free(w.expected);
	return getenv("KEEP") ? 0 : remove_dir(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_missing), cmocka_unit_test(test_gaps),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
