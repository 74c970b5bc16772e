/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds stacks that are gone. Nothing reports that a coroutine with open calls is destroyed. But as
 * long as a call is open, the call's slot holds the return address. pb_stacks_look() reads these
 * slots on all stacks on which no thread runs. It does this only when there are enough new stacks:
 * at least LOOK_AFTER, and at least as many as there were stacks in total after the last look. If a
 * slot holds another word, or can't be read, the slot's call is over. Then the calls that this call
 * made are over, too. A stack that has no open calls is dropped if its bounds were guessed, or if
 * it is unmapped.
 *
 * The slots are read by a system call. If a seccomp filter may end the program because of this
 * system call, nothing is done.
 */
#include <sys/uio.h>
#include "base/base.h"
#include "base/sys.h"
#include "engine/graph/calls.h"
#include "engine/sandbox.h"

#define LOOK_AFTER	64		/* smallest number of new stacks before a look */

static bool can_read(uint64_t address, uint64_t *word)
{
	struct iovec to = { word, 8 }, from = { (void *)address, 8 };

	return pb_sys(SYS_process_vm_readv, pb_process->pid, &to, 1, &from, 1, 0) == 8;
}

static bool is_over(const struct pb_open_call *c)
{
	uint64_t slot = (uint64_t)c->word, ret = c->ret, word;

	if (!pb_open_is_live(c) || ret == PB_OPEN_NO_RET)
		return false;
	return (!can_read(slot, &word) || word != ret) && c->word == (int64_t)slot && c->ret == ret;
}

/* Returns the slot of the outermost call that is over; 0: there is none. Looks at the calls from
 * the innermost one outwards, until a call isn't over. Then looks at the stack's outermost call: if
 * that is over, all calls are. Not inlined, so that its frame isn't on the stack while
 * pb_calls_close_stack() runs. */
static __attribute__((noinline)) uint64_t over_from(const struct pb_stack *s)
{
	struct pb_open_call *c = __atomic_load_n(&s->top, __ATOMIC_RELAXED);
	uint64_t outermost = pb_chain_outermost(s), slot = 0;

	/* another thread has just taken the entry for a new stack */
	if (!c)
		return 0;
	c = pb_open_innermost(c);
	for (; !pb_open_is_root(c) && is_over(c); c = pb_open_below(c))
		slot = (uint64_t)c->word;
	if (slot == outermost || !outermost)
		return slot;
	c = pb_chain_first(s);
	return c && is_over(c) ? outermost : slot;
}

/* Returns whether the stack is unmapped. A stack that may still be used is readable at its upper
 * end. Not inlined, for the same reason. */
static __attribute__((noinline)) bool is_unmapped(const struct pb_stack *s)
{
	uint64_t word;

	return !can_read(s->hi - 8, &word);
}

static void look_at(struct pb_thread *t, struct pb_stack *s)
{
	uint64_t slot;

	if (!pb_stack_is_filled(s) || s->closing || !pb_stack_is_idle(s))
		return;
	slot = over_from(s);
	if (slot)
		pb_calls_close_stack(t, s, slot);
	if (pb_chain_is_empty(s) && pb_stack_is_idle(s) && (!s->exact || is_unmapped(s)))
		pb_stack_drop(s);
}

void pb_stacks_look(struct pb_thread *t)
{
	uint32_t nr = __atomic_load_n(&pb_process->new_stacks, __ATOMIC_RELAXED), live = 0;

	if (pb_likely(nr < LOOK_AFTER || nr < pb_process->look_stacks) || !pb_calls_are_safe() ||
	    !__atomic_compare_exchange_n(&pb_process->new_stacks, &nr, 0, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	nr = __atomic_load_n(&pb_process->nr_stacks, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < nr; i++) {
		look_at(t, &pb_stacks[i]);
		live += pb_stack_is_filled(&pb_stacks[i]);
	}
	__atomic_store_n(&pb_process->look_stacks, live, __ATOMIC_RELAXED);
}
