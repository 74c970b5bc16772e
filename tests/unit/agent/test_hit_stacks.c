/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests the stacks for C code at hits: which of them become free in a forked child, and that the
 * child knows the owner of each stack, at whichever instruction a hit was at the fork.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "arch/arch.h"
#include "arch/x86_64/hit_stacks.h"

/* In a forked child, the stacks of its parent's other threads become free. */
static void child_frees_hit_stacks(void **state)
{
	const uint64_t own = (uint64_t)__builtin_thread_pointer(), other = own + 8;
	const struct {
		uint64_t tcb;
		uint32_t epoch;
		bool freed;
	} uses[] = {
		{ own, 3 },		/* a hit that a handler has interrupted */
		{ other, 3, true },
		{ other, 2, true },
		{ other, 0 },		/* a hit in the child */
		{ other, 4 },		/* the same, later */
		{ own, 4 },
		{ 0, 0 },		/* a hit in the child, of a thread without a TCB */
		{ 0, 3, true },
		{ other, 3, true },
	};
	const unsigned nr = sizeof(uses) / sizeof(uses[0]);

	for (unsigned i = 0; i < PB_NR_HIT_STACKS; i++)
		pb_hit_stack_owners[i] = pb_hit_stack_owner(uses[i % nr].tcb, uses[i % nr].epoch);
	pb_hit_stacks_forked(4);
	for (unsigned i = 0; i < PB_NR_HIT_STACKS; i++)
		assert_int_equal(pb_hit_stack_owners[i], uses[i % nr].freed ? 0 :
				 pb_hit_stack_owner(uses[i % nr].tcb, uses[i % nr].epoch));
	memset(pb_hit_stack_owners, 0, PB_NR_HIT_STACKS * sizeof(pb_hit_stack_owners[0]));
}

/* ---- a hit is interrupted at each of its instructions ---- */

/* Takes the first free stack, and gives it back. Returns its number, or -1 if there is none. Raises
 * SIGTRAP after each instruction. */
int hit_stack_step(void);

static uint64_t words_before[PB_NR_HIT_STACKS], hit_owner;
static volatile unsigned nr_steps, nr_taken, nr_wrong;

/* The words differ from those before the hit in one word at most, and this word has the owner. In a
 * child that another thread forks here, the stack becomes free. */
static void look_at_owners(int sig)
{
	unsigned changed = 0;

	for (unsigned i = 0; i < PB_NR_HIT_STACKS; i++) {
		if (pb_hit_stack_owners[i] == words_before[i])
			continue;
		changed++;
		nr_wrong += words_before[i] || pb_hit_stack_owners[i] != hit_owner;
	}
	nr_wrong += changed > 1;
	nr_taken += changed;
	nr_steps++;
}

static int step(void)
{
	int nr;

	memcpy(words_before, pb_hit_stack_owners, sizeof(words_before));
	nr_steps = nr_taken = nr_wrong = 0;
	nr = hit_stack_step();
	assert_memory_equal(words_before, pb_hit_stack_owners, sizeof(words_before));
	assert_int_equal(nr_wrong, 0);
	assert_true(nr_steps > 10);
	assert_true(nr < 0 ? !nr_taken : nr_taken > 10);
	return nr;
}

/* struct pb_process, as far as the macros know it */
uint8_t process[PROCESS_STACKS_FREED + 1], *pb_process = process;

static void stack_always_has_an_owner(void **state)
{
	struct sigaction sa = { .sa_handler = look_at_owners }, old;
	const uint32_t epoch = 0x10003;

	memcpy(process + PROCESS_EPOCH, &epoch, sizeof(epoch));
	hit_owner = pb_hit_stack_owner((uint64_t)__builtin_thread_pointer(), epoch);
	sigaction(SIGTRAP, &sa, &old);
	/* a child that hasn't freed its parent's stacks */
	assert_int_equal(step(), 0);
	assert_int_not_equal(pb_hit_stack_owner(0, 0), 0);
	process[PROCESS_STACKS_FREED] = 1;
	for (int i = 1; i < PB_NR_HIT_STACKS; i++) {
		assert_int_equal(step(), i);
		pb_hit_stack_owners[i] = 1;
	}
	assert_int_equal(step(), -1);
	process[PROCESS_STACKS_FREED] = 0;
	assert_int_equal(step(), 0);
	pb_hit_stack_owners[0] = 1;
	assert_int_equal(step(), -1);
	sigaction(SIGTRAP, &old, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(child_frees_hit_stacks),
		cmocka_unit_test(stack_always_has_an_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
