/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the order in which the events of several threads are merged. If a thread entered an event's
 * stack from another stack, the tests also check from which call the thread came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../test_dir.h"
#include "../recordings/gen_data.h"
#include "reader/stream.h"

#define STACK 77

static struct gen g;
static char text[1 << 12];

/* Writes each event as "site@time". If a thread entered the event's stack from another stack,
 * appends "<site" of the other stack's innermost call. */
static void note(const struct pb_event *ev)
{
	const struct pb_call_stack *from = ev->stack->from;
	size_t len = strlen(text);

	len += (size_t)sprintf(text + len, "%u@%llu", ev->site, (unsigned long long)ev->time);
	if (from)
		len += (size_t)sprintf(text + len, "<%u",
				       from->depth ? from->calls[from->depth - 1].site : 0);
	strcpy(text + len, " ");
}

static const char *events(void)
{
	char err[5000];
	struct pb_data *d;
	struct pb_stream s;
	struct pb_event ev;

	gen_chunk_write(&g);
	gen_end(&g, 1ull << 40);
	d = pb_data_open(dir, 0, err, sizeof(err));
	assert_non_null(d);
	text[0] = 0;
	assert_int_equal(pb_stream_open(&s, d, true, NULL, 0), 0);
	while (pb_stream_next(&s, &ev) && strlen(text) < sizeof(text) - 200)
		note(&ev);
	pb_stream_close(&s);
	pb_data_close(d);
	return text;
}

/* A thread's chunk begins with a record that was written long after the last record of the
 * chunk before. */
static void test_late_chunk(void **state)
{
	gen_begin(&g, dir, "function_graph", "x86-tsc");
	gen_chunk(&g, 1, 101, 0, 1000);
	gen_leaf(&g, 1, 1010, 1020);
	gen_chunk_write(&g);
	gen_chunk(&g, 1, 101, 1, 1020);
	gen_leaf(&g, 2, 1500, 1510);
	gen_leaf(&g, 2, 1700, 1710);
	gen_chunk_write(&g);
	gen_chunk(&g, 2, 102, 0, 1000);
	gen_leaf(&g, 3, 1050, 1060);
	gen_leaf(&g, 3, 1150, 1160);
	gen_leaf(&g, 3, 1600, 1610);
	assert_string_equal(events(), "1@1020 3@1060 3@1160 2@1510 3@1610 2@1710 ");
}

/* Like test_late_chunk(), but the late records belong to a stack that the other thread used
 * before. */
static void test_late_chunk_of_stack(void **state)
{
	gen_begin(&g, dir, "function_graph", "x86-tsc");
	gen_chunk(&g, 1, 101, 0, 1000);
	gen_entry(&g, 1, 1010);
	gen_entry(&g, 2, 1020);
	gen_chunk_write(&g);
	gen_chunk(&g, 1, 101, 1, 1020);
	g.head.stack = STACK;
	gen_exit(&g, 9, 1500);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, 0);
	gen_exit(&g, 2, 1600);
	gen_chunk_write(&g);
	gen_chunk(&g, 2, 102, 0, 1000);
	gen_entry(&g, 3, 1030);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, STACK);
	gen_entry(&g, 9, 1100);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, 0);
	gen_exit(&g, 3, 1200);
	assert_string_equal(events(), "1@1010 2@1020 3@1030 9@1100<3 3@1200 9@1500<2 2@1600 ");
}

/*
 * Thread 1 is about to enter a coroutine's stack: the call that enters it has begun. Meanwhile
 * thread 2 goes to the coroutine's stack to look for dead calls, and leaves it. Later thread 1
 * makes calls on the coroutine's stack. These calls must still count as made by thread 1's call.
 */
static void test_stack_looked_at(void **state)
{
	gen_begin(&g, dir, "function_graph", "x86-tsc");
	gen_chunk(&g, 1, 101, 0, 1000);
	gen_entry(&g, 1, 1010);
	gen_entry(&g, 2, 1500);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, STACK);
	gen_entry(&g, 9, 1600);
	gen_leaf(&g, 8, 1610, 1620);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, 0);
	gen_exit(&g, 2, 1700);
	gen_chunk_write(&g);
	gen_chunk(&g, 2, 102, 0, 1000);
	gen_entry(&g, 3, 1005);
	gen_leaf(&g, 4, 1510, 1520);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, STACK);
	gen_ext1(&g, PB_EXT_STACK, 0, 0, 0);
	gen_leaf(&g, 4, 1800, 1810);
	assert_string_equal(events(),
			    "3@1005 1@1010 2@1500 4@1520 9@1600<2 8@1620<2 2@1700 4@1810 ");
}

/* A damaged call that would begin before the time 0 begins at 0. */
static void test_before_zero(void **state)
{
	gen_begin(&g, dir, "function_graph", "x86-tsc");
	gen_chunk(&g, 1, 101, 0, 0);
	gen_leaf(&g, 1, -4ull, 1);
	gen_chunk_write(&g);
	gen_chunk(&g, 2, 102, 0, 0);
	gen_leaf(&g, 3, 10, 20);
	assert_string_equal(events(), "1@1 3@20 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_chunk), cmocka_unit_test(test_late_chunk_of_stack),
		cmocka_unit_test(test_stack_looked_at), cmocka_unit_test(test_before_zero),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
