/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests what the decoder reads from the start of a chunk, that is, from its header and from its
 * list of open calls. Header and list say which calls are open at the start, whether records were
 * lost before, and which stack the thread was on. If nothing was lost before, the decoder knows the
 * open calls already, and ignores the list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "test_reader_starts.h"
#include "reader_events.h"

void test_stacks(void **state)
{
	/* a coroutine that thread 1 begins and thread 2 ends */
	begin_chunk(1000);
	gen_entry(&g, 1, 1010);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, 77);
	gen_entry(&g, 2, 1020);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, 0);
	gen_exit(&g, 1, 1500);
	gen_chunk_write(&g);
	gen_chunk(&g, 2, 101, 0, 1100);
	g.head.stack = 77;
	g.head.depth = 1;
	gen_ext1(&g, PB_EXT_OPEN, 2, 0, 1020);
	gen_leaf(&g, 3, 1110, 1120);
	gen_exit(&g, 2, 1130);
	assert_string_equal(finish(),
			    "entry 1 @1010 d0\nentry 2 @1020 d0\n"
			    "leaf 3 1110-1120 d1\nexit 2 1020-1130 d0\n"
			    "exit 1 1010-1500 d0\n");
}

void test_same_stack_number_elsewhere(void **state)
{
	/* each process has its own stack numbers */
	begin_chunk(1000);
	g.head.stack = 77;
	gen_entry(&g, 2, 1020);
	gen_chunk_write(&g);
	gen_chunk(&g, 2, 200, 0, 1100);
	g.head.stack = 77;
	g.head.pid = 200;
	gen_exit(&g, 2, 1130);
	assert_string_equal(finish(), "entry 2 @1020 d0\nexit 2 0-1130 d0\n");
}

void test_open_ignored(void **state)
{
	begin_chunk(1000);
	gen_entry(&g, 1, 1010);
	gen_chunk_write(&g);
	gen_chunk(&g, 1, 100, 1, 1020);
	g.head.depth = 1;
	gen_ext1(&g, PB_EXT_OPEN, 1, 0, 1010);
	gen_exit(&g, 1, 1030);
	assert_string_equal(finish(), "entry 1 @1010 d0\nexit 1 1010-1030 d0\n");
}

void test_gap(void **state)
{
	begin_chunk(1000);
	gen_entry(&g, 1, 1010);
	gen_entry(&g, 2, 1020);
	gen_chunk_write(&g);
	gen_chunk(&g, 1, 100, 5, 2000);		/* chunks 1 to 4 were overwritten */
	g.head.depth = 2;
	gen_ext1(&g, PB_EXT_OPEN, 1, 0, 1010);
	gen_ext1(&g, PB_EXT_OPEN, 2, 0, 1900);	/* another call of site 2 */
	gen_exit(&g, 2, 2010);
	gen_exit(&g, 1, 2020);
	assert_string_equal(finish(),
			    "entry 1 @1010 d0\nentry 2 @1020 d1\n"
			    "end 2 1020-2000 d1 gap\nopen 2 1900-2000 d1\nlost 0 0 d2 gap\n"
			    "exit 2 1900-2010 d1\nexit 1 1010-2020 d0\n");
}

void test_lost_between(void **state)
{
	/* no chunk is missing, but records were lost: the reader uses the second chunk's list of
	 * open calls */
	begin_chunk(1000);
	gen_entry(&g, 1, 1010);
	gen_entry(&g, 2, 1020);
	gen_chunk_write(&g);
	gen_chunk(&g, 1, 100, 1, 2000);
	g.head.lost = 42;
	g.head.depth = 1;
	gen_ext1(&g, PB_EXT_OPEN, 1, 0, 1010);
	gen_ext1(&g, PB_EXT_LOST, 0, 0, 42);
	gen_exit(&g, 1, 2020);
	assert_string_equal(finish(),
			    "entry 1 @1010 d0\nentry 2 @1020 d1\n"
			    "end 2 1020-2000 d1 gap\nlost 0 42 d1\nexit 1 1010-2020 d0\n");
}

void test_lost_by_header(void **state)
{
	begin_chunk(1000);
	g.head.lost = 42;
	gen_leaf(&g, 1, 1010, 1020);
	gen_thread(&g, 1, 100, 100, "t", 50, 0);	/* eight more records were lost after the
							 * last chunk */
	assert_string_equal(finish(), "lost 0 42 d0\nleaf 1 1010-1020 d0\nlost 0 8 d0\n");
}

void test_inherited(void **state)
{
	begin_chunk(1000);
	g.head.depth = 1;
	gen_ext1(&g, PB_EXT_OPEN, 1, 0, 500);
	gen_exit(&g, 1, 1100);
	assert_string_equal(finish(), "open 1 500-1000 d0 inherited\nexit 1 500-1100 d0\n");
}

/* A call had no record when its process forked. Parent and child each write a record of this
 * call. */
void test_inherited_without_entry(void **state)
{
	begin_chunk(5000);
	gen_entry(&g, 4, 4000);
	gen_leaf(&g, 5, 5100, 5200);
	gen_exit(&g, 4, 5300);
	gen_leaf(&g, 6, 4900, 5400);
	gen_ext1(&g, PB_EXT_END, 7, 5500, 4950);
	gen_leaf(&g, 8, 5510, 5520);
	assert_string_equal(finish(),
			    "open 4 4000-5000 d0 inherited\n"
			    "leaf 5 5100-5200 d1\n"
			    "exit 4 4000-5300 d0\n"
			    "exit 6 0-5400 d0 inherited\n"
			    "end 7 4950-5500 d0 inherited\n"
			    "leaf 8 5510-5520 d0\n");
	/* a forked process begins with one thread, so its other threads inherit no calls */
	begin_chunk(5000);
	g.head.tid = 101;
	gen_entry(&g, 4, 4000);
	assert_string_equal(finish(), "entry 4 @4000 d0\n");
}

/* The first chunks of a forked process were overwritten. The process's THREAD record says when the
 * process began. */
void test_inherited_later(void **state)
{
	begin();
	gen_chunk(&g, 1, 100, 7, 5000);
	g.head.depth = 2;
	gen_ext1(&g, PB_EXT_OPEN, 1, 0, 500);
	gen_ext1(&g, PB_EXT_OPEN, 2, 0, 4100);
	gen_exit(&g, 2, 5100);
	gen_exit(&g, 1, 5200);
	gen_born(&g, 1, 100, 100, 4000);
	assert_string_equal(finish(), "open 1 500-5000 d0 inherited\nopen 2 4100-5000 d1\n"
			    "exit 2 4100-5100 d1\nexit 1 500-5200 d0\n");
}

/* A thread's first chunk may also list calls that its own process made. These are calls of a
 * coroutine that ran on another thread before, or a call that a handler interrupted before the
 * call's ENTRY was written. */
void test_listed_not_inherited(void **state)
{
	begin_chunk(1000);
	g.head.tid = 101;
	g.head.depth = 1;
	gen_ext1(&g, PB_EXT_OPEN, 1, 0, 500);
	gen_exit(&g, 1, 1100);
	assert_string_equal(finish(), "open 1 500-1000 d0\nexit 1 500-1100 d0\n");

	begin_chunk(1000);
	g.head.depth = 1;
	gen_ext1(&g, PB_EXT_OPEN, 1, 0, 950);
	gen_leaf(&g, 2, 1010, 1020);
	gen_entry(&g, 1, 950);
	gen_exit(&g, 1, 1100);
	gen_born(&g, 1, 100, 100, 900);
	assert_string_equal(finish(),
			    "open 1 950-1000 d0\nleaf 2 1010-1020 d1\nexit 1 950-1100 d0\n");
}

/* There are more open calls than the list holds. The calls that aren't listed are inherited,
 * too. */
void test_inherited_deep(void **state)
{
	begin_chunk(5000);
	g.head.depth = PB_CHUNK_OPEN_MAX + 1;
	for (uint32_t i = 0; i < PB_CHUNK_OPEN_MAX; i++)
		gen_ext1(&g, PB_EXT_OPEN, 4, 0, 1000 + i);
	for (uint32_t i = 0; i < PB_CHUNK_OPEN_MAX + 2; i++)
		gen_exit(&g, 4, 6000 + i);
	finish();
	assert_non_null(strstr(text, "exit 4 1000-6127 d1\nexit 4 0-6128 d0 inherited\n"
			       "exit 4 0-6129 d0\n"));
}

void test_open_before_its_entry(void **state)
{
	/* the chunk was opened for the ENTRY of a call, and its list also has this call */
	begin_chunk(1000);
	gen_ext1(&g, PB_EXT_OPEN, 1, 0, 1050);
	gen_entry(&g, 1, 1050);
	gen_exit(&g, 1, 1100);
	assert_string_equal(finish(), "entry 1 @1050 d0\nexit 1 1050-1100 d0\n");
}

/* Begins a chunk in which `depth` calls are open. Its list has the innermost `nr` calls: sites 1 to
 * nr. */
static void open_list(uint32_t depth, uint32_t nr)
{
	begin();
	gen_chunk(&g, 1, 100, 7, 1000);
	g.head.depth = depth;
	for (uint32_t i = 1; i <= nr; i++)
		gen_ext1(&g, PB_EXT_OPEN, i, 0, 500 + i);
}

void test_open_list_cut(void **state)
{
	const char *p;

	open_list(300, PB_CHUNK_OPEN_MAX);
	for (uint32_t i = PB_CHUNK_OPEN_MAX; i; i--)
		gen_exit(&g, i, 2000 - i);
	gen_exit(&g, 999, 3000);
	p = finish();
	assert_int_equal(strncmp(p, "open 1 501-1000 d172\nopen 2 502-1000 d173\n", 42), 0);
	assert_non_null(strstr(p, "\nopen 128 628-1000 d299\nexit 128 628-1872 d299\n"));
	assert_non_null(strstr(p, "\nexit 1 501-1999 d172\nexit 999 0-3000 d171\n"));

	/* the list's last call has its ENTRY right after the list */
	open_list(300, PB_CHUNK_OPEN_MAX);
	gen_entry(&g, PB_CHUNK_OPEN_MAX, 500 + PB_CHUNK_OPEN_MAX);
	p = finish();
	assert_int_equal(strncmp(p, "open 1 501-1000 d172\n", 21), 0);
	assert_non_null(strstr(p, "\nopen 127 627-1000 d298\nentry 128 @628 d299\n"));
}

/* A list with fewer than PB_CHUNK_OPEN_MAX calls has all open calls, even if the depth is
 * larger. */
void test_open_list_whole(void **state)
{
	const char *p;

	open_list(300, PB_CHUNK_OPEN_MAX - 1);
	gen_exit(&g, PB_CHUNK_OPEN_MAX - 1, 2000);
	p = finish();
	assert_int_equal(strncmp(p, "open 1 501-1000 d0\n", 19), 0);
	assert_non_null(strstr(p, "\nexit 127 627-2000 d126\n"));
}

/* If a call's ENTRY was lost, the depth counts the call, but the list doesn't have it. */
void test_open_list_short(void **state)
{
	begin_chunk(1000);
	gen_entry(&g, 1, 1010);
	gen_entry(&g, 2, 1020);
	gen_chunk_write(&g);
	gen_chunk(&g, 1, 100, 1, 2000);
	g.head.lost = 7;
	g.head.depth = 5;
	gen_ext1(&g, PB_EXT_OPEN, 1, 0, 1010);
	gen_ext1(&g, PB_EXT_OPEN, 2, 0, 1020);
	gen_exit(&g, 2, 2010);
	gen_exit(&g, 1, 2020);
	assert_string_equal(finish(),
			    "entry 1 @1010 d0\nentry 2 @1020 d1\nlost 0 7 d2\n"
			    "exit 2 1020-2010 d1\nexit 1 1010-2020 d0\n");
}

void test_leaf_open(void **state)
{
	begin_chunk(1000);
	g.head.leaf_site = 4;
	g.head.leaf_start = 1050;
	gen_entry(&g, 1, 1010);
	gen_leaf(&g, 2, 1020, 1030);
	assert_string_equal(finish(),
			    "entry 1 @1010 d0\nleaf 2 1020-1030 d1\nrunning 4 @1050 d1\n");

	/* the header's leaf is stale, because the chunk has a record with a later time */
	begin_chunk(1000);
	g.head.leaf_site = 4;
	g.head.leaf_start = 1050;
	gen_leaf(&g, 4, 1050, 1060);
	assert_string_equal(finish(), "leaf 4 1050-1060 d0\n");
}
