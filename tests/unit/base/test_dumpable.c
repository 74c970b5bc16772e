/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests the loan of the dumpable state against two threads of the program that set the state
 * themselves. The kernel's state is a variable here. Before and after each system call of the loan,
 * a thread may go on: it announces its call, or makes it. The test tries all orders.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <cmocka.h>

#include "base/ptrace_right.h"
#include "base/sys.h"

static long fake_prctl(int op, uint32_t value);

#undef pb_sys
#define pb_sys(nr, op, value, ...) fake_prctl(op, value)
#include "base/dumpable.c"

enum { SET_0, SET_1, REFUSED_0, REFUSED_1, NR_KINDS };
#define NO_POINT	1000
#define MAX_POINTS	24

struct thread {
	unsigned kind;
	unsigned ask_at, call_at;	/* numbers of the points; ask_at <= call_at */
	uint32_t before;
};

static struct thread threads[2];
static uint32_t kernel;
static unsigned point;
static bool inside;

bool pb_ptrace_right_held(void)
{
	return false;
}

static uint32_t wanted(const struct thread *t)
{
	return t->kind & 1;
}

static bool is_refused(const struct thread *t)
{
	return t->kind >= REFUSED_0;
}

static void finish_call(struct thread *t)
{
	if (is_refused(t)) {
		pb_dumpable_asked(wanted(t), true, t->before);
		return;
	}
	kernel = wanted(t);
	while (pb_dumpable_asked(wanted(t), false, t->before)) {
		t->before = pb_dumpable_ask(wanted(t));
		kernel = wanted(t);
	}
}

/* A place at which the program's threads may go on. */
static void at_point(void)
{
	if (inside)
		return;
	inside = true;
	for (struct thread *t = threads; t < threads + 2; t++)
		if (t->ask_at == point)
			t->before = pb_dumpable_ask(wanted(t));
	for (struct thread *t = threads; t < threads + 2; t++)
		if (t->call_at == point)
			finish_call(t);
	inside = false;
	point++;
}

static long fake_prctl(int op, uint32_t value)
{
	long ret = 0;

	at_point();
	if (op == PR_GET_DUMPABLE)
		ret = kernel;
	else
		kernel = value;
	at_point();
	return ret;
}

static void begin(void)
{
	kernel = point = 0;
	loan = 0;
}

static bool is_before(const struct thread *a, const struct thread *b)
{
	return a->call_at < b->ask_at;
}

/* Whether the program may have this state after both threads' calls. */
static bool is_right(uint32_t state)
{
	const struct thread *a = &threads[0], *b = &threads[1];
	bool a_sets = a->ask_at != NO_POINT && !is_refused(a);
	bool b_sets = b->ask_at != NO_POINT && !is_refused(b);

	if (!a_sets && !b_sets)
		return state == 0;
	if (!b_sets || (a_sets && is_before(b, a)))
		return state == wanted(a);
	if (!a_sets || is_before(a, b))
		return state == wanted(b);
	return state == wanted(a) || state == wanted(b);
}

/* Returns the number of points that there were. */
static unsigned one_loan(void)
{
	unsigned nr;

	begin();
	pb_dumpable_lend();
	at_point();
	pb_dumpable_return();
	at_point();
	nr = point;
	/* what the threads haven't done yet */
	for (; point < MAX_POINTS; )
		at_point();
	assert_true(is_right(kernel));
	return nr;
}

static void try_second(unsigned kind)
{
	struct thread *b = &threads[1];

	b->kind = kind;
	/* a filter refuses a value to all threads */
	if (is_refused(&threads[0]) && wanted(&threads[0]) == wanted(b))
		return;
	for (b->ask_at = 0; b->ask_at < MAX_POINTS; b->ask_at++)
		for (b->call_at = b->ask_at; b->call_at < MAX_POINTS; b->call_at++)
			one_loan();
}

/* The last value that the program has set is the state after the loan. */
static void program_has_the_last_word(void **state)
{
	struct thread *a = &threads[0], *b = &threads[1];
	const struct thread none = { .ask_at = NO_POINT, .call_at = NO_POINT };

	*a = *b = none;
	assert_true(one_loan() > 6);
	for (a->kind = 0; a->kind < NR_KINDS; a->kind++) {
		for (a->ask_at = 0; a->ask_at < MAX_POINTS; a->ask_at++) {
			for (a->call_at = a->ask_at; a->call_at < MAX_POINTS; a->call_at++) {
				*b = none;
				one_loan();
				try_second(SET_0);
				try_second(SET_1);
			}
		}
	}
	*a = *b = none;
}

/* The program has announced the value 0, but its call hasn't been made, or is never made. */
static void announced_0_is_no_fact(void **state)
{
	int value;

	begin();
	pb_dumpable_lend();
	assert_int_equal(kernel, 1);
	assert_true(pb_dumpable_is_lent(&value));
	pb_dumpable_ask(0);
	assert_true(pb_dumpable_is_lent(&value));
	assert_int_equal(value, 0);
	/* also in a child that is forked now */
	pb_dumpable_return();
	assert_int_equal(kernel, 0);
	assert_false(pb_dumpable_is_lent(&value));
}

/* While a loan ends, or while a whole loan passes, fork() has copied the state for the child, but
 * not the memory. */
static void child_inherits_only_the_state(void **state)
{
	uint32_t before;

	begin();
	before = pb_dumpable_fork_begins();
	pb_dumpable_lend();
	pb_dumpable_return();
	kernel = 1;
	pb_dumpable_forked(before);
	assert_int_equal(kernel, 0);

	pb_dumpable_lend();
	before = pb_dumpable_fork_begins();
	pb_dumpable_return();
	kernel = 1;
	pb_dumpable_forked(before);
	assert_int_equal(kernel, 0);

	/* without a loan, the state is the program's own */
	before = pb_dumpable_fork_begins();
	kernel = 1;
	pb_dumpable_forked(before);
	assert_int_equal(kernel, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(program_has_the_last_word),
		cmocka_unit_test(announced_0_is_no_fact),
		cmocka_unit_test(child_inherits_only_the_state),
	};

	threads[0].ask_at = threads[0].call_at = threads[1].ask_at = threads[1].call_at = NO_POINT;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
