/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a forked child makes of the entries (engine/gate.c) that other threads, or the thread that forked,
 * were just about to take or to fill. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "engine/thread.h"

#define OWN	0x7f0000000000ul	/* the stack of the thread that forks */
#define OTHER	0x7e0000000000ul
#define SIZE	0x10000ul

char pb_gates[PB_NR_GATES * PB_GATE_SIZE], pb_entries[4 * PB_ENTRY_ARRAY];
struct pb_process *pb_process;

static struct pb_process process;
static struct pb_thread forker, other;
static bool other_known;		/* its stack, when the fork came */

bool pb_thread_own_bounds(const struct pb_thread *t, struct pb_stack *s)
{
	assert_ptr_equal(t, &other);
	s->lo = OTHER;
	s->hi = OTHER + SIZE;
	return other_known;
}

static struct pb_entry *entry(uint32_t i)
{
	return (struct pb_entry *)(pb_entries + (uint64_t)i * 16);
}

static int begin(void **state)
{
	memset(pb_entries, 0, sizeof(pb_entries));
	pb_process = &process;
	process = (struct pb_process){ .epoch = 1 };
	forker = (struct pb_thread){ .own = { .lo = OWN, .hi = OWN + SIZE, .exact = true },
				     .first_block = PB_NO_BLOCK, .cursor = PB_NO_BLOCK };
	other = (struct pb_thread){ .own = { .lo = OTHER, .hi = OTHER + SIZE, .exact = true },
				    .first_block = PB_NO_BLOCK, .cursor = PB_NO_BLOCK };
	other_known = false;
	pb_gates_start();
	forker.own.root = pb_gate_root(&forker, OWN + SIZE);
	return 0;
}

/* Blocks stay taken in the table, which only gate.c sees: give them back for the next test. */
static int end(void **state)
{
	for (uint32_t i = 64; i < pb_gates_used(); i++)
		if (PB_ENT_SLOT(entry(i)) != PB_SLOT_GUARD)
			PB_ENT_SLOT(entry(i)) = 0;
	pb_gates_give_back(&forker);
	pb_gates_give_back(&other);
	return 0;
}

static struct pb_entry *in_child(void)
{
	process.epoch = 2;
	return pb_gates_after_fork(&forker, OWN + SIZE - 256);
}

/* Another thread has taken the entry for its stack's root, and hasn't written it. */
static void test_root_of_other_thread(void **state)
{
	struct pb_entry *e = pb_gate_claim_new(&other, OTHER + SIZE);

	assert_null(in_child());
	assert_int_equal(PB_ENT_SLOT(e), 0);
}

/* Another thread has claimed an entry for a call on a coroutine's stack: nobody goes on with it. */
static void test_claim_of_other_thread(void **state)
{
	struct pb_entry *root = pb_gate_root(&other, OTHER + SIZE), *e = pb_gate_claim(&other, 0x1000000 - 64);

	other_known = true;
	assert_null(in_child());
	assert_int_equal(PB_ENT_SLOT(e), 0);
	assert_int_equal(PB_ENT_SLOT(root), 0);
}

/* A handler that interrupted an entry forks: the child goes on with the entry. */
static void test_claim_of_own(void **state)
{
	struct pb_entry *e = pb_gate_claim(&forker, OWN + SIZE - 128);

	PB_ENT_PARENT(e) = NULL;
	assert_null(in_child());
	assert_int_equal(PB_ENT_SLOT(e), OWN + SIZE - 128);
	assert_ptr_equal(PB_ENT_PARENT(e), forker.own.root);
	assert_ptr_equal(PB_ENT_OWNER(e), &forker);
}

/* Another thread has taken a block, and isn't in it yet. */
static void test_block_without_owner(void **state)
{
	struct pb_entry *e = pb_gate_claim_new(&other, OTHER + SIZE - 64), *first;

	first = entry((uint32_t)(((char *)e - pb_entries) / 16 / PB_GATES_PER_BLOCK * PB_GATES_PER_BLOCK));
	for (uint32_t i = 0; i < PB_GATES_PER_BLOCK; i++)
		for (uint64_t array = 0; array < 4; array++)
			memset((char *)first + i * 16 + array * PB_ENTRY_ARRAY, 0, 16);
	assert_null(in_child());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_root_of_other_thread, begin, end),
		cmocka_unit_test_setup_teardown(test_claim_of_other_thread, begin, end),
		cmocka_unit_test_setup_teardown(test_claim_of_own, begin, end),
		cmocka_unit_test_setup_teardown(test_block_without_owner, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
