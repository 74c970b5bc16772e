/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of stacks. For each stack, the table says which thread is on the stack. Threads take
 * and drop entries without a lock: an entry belongs to the thread that changes the entry's id to 1.
 */
#include "engine/graph/stack.h"
#include "engine/graph/chains.h"

/* A coroutine may continue in another thread than the one that made its open calls. A hit of this
 * other thread is then on the coroutine's stack. This is assumed if no thread runs on the stack,
 * and the hit's slot is at most this many bytes below or above the slots of the stack's open
 * calls. */
#define CONTINUES	8192
#define FULL		1024		/* after a search has found the table full, this many
					 * requests fail without a search */
#define INDEX_BITS	16		/* of an id; the serial has 32 bits, and the bits 62 and 63
					 * mark other kinds of stacks (thread.c) */
_Static_assert(PB_MAX_STACKS + PB_STACK_FILLED <= 1 << INDEX_BITS, "stack ids");

/* While a thread visits another stack, its own one isn't idle. At the start of a visit, the thread
 * first stores visited_from; at the end, it first stores `stack`. So `stack` is read twice. */
bool pb_stack_is_idle(const struct pb_stack *s)
{
	struct pb_thread *t = __atomic_load_n(&s->thread, __ATOMIC_SEQ_CST);

	return !t || (__atomic_load_n(&t->stack, __ATOMIC_SEQ_CST) != s &&
		      __atomic_load_n(&t->visited_from, __ATOMIC_SEQ_CST) != s &&
		      __atomic_load_n(&t->stack, __ATOMIC_SEQ_CST) != s);
}

static bool take(struct pb_stack *s, uint64_t id)
{
	return __atomic_compare_exchange_n(&s->id, &id, 1, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

static bool is_unused(const struct pb_stack *s)
{
	return !__atomic_load_n(&s->closing, __ATOMIC_SEQ_CST) && pb_stack_is_idle(s) &&
	       pb_chain_is_empty(s);
}

/* Takes a filled entry. Like pb_stack_visit() and pb_thread_use_stack(), first stores a mark (the
 * id 1), and then looks for other threads (stack.c). False: a thread is on the stack or closes its
 * calls, or calls are open on it. */
static bool take_unused(struct pb_stack *s)
{
	uint64_t id = __atomic_load_n(&s->id, __ATOMIC_ACQUIRE);

	if (id < PB_STACK_FILLED || !is_unused(s) || !take(s, id))
		return false;
	if (is_unused(s))
		return true;
	__atomic_store_n(&s->id, id, __ATOMIC_SEQ_CST);
	return false;
}

void pb_stack_drop(struct pb_stack *s)
{
	if (!take_unused(s))
		return;
	__atomic_store_n(&s->id, 0, __ATOMIC_SEQ_CST);
	if (s - pb_stacks < pb_process->stack_hint)
		pb_process->stack_hint = (uint32_t)(s - pb_stacks);
	pb_process->no_stack = 0;
}

/* reserved: also takes an entry that a forked child may need for a stack of an ancestor. If the
 * child comes to that stack later, it doesn't find the stack's open calls. */
static struct pb_stack *take_free(bool reserved)
{
	uint32_t from = __atomic_load_n(&pb_process->stack_hint, __ATOMIC_RELAXED);

	for (uint32_t n = 0; n < PB_MAX_STACKS; n++) {
		uint32_t i = (from + n) % PB_MAX_STACKS;

		if (pb_stacks[i].id || (!reserved && pb_chain_is_reserved(&pb_stacks[i])) ||
		    !take(&pb_stacks[i], 0))
			continue;
		pb_raise_to(&pb_process->nr_stacks, i + 1);
		__atomic_store_n(&pb_process->stack_hint, i + 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&pb_process->new_stacks, 1, __ATOMIC_RELAXED);
		return &pb_stacks[i];
	}
	return NULL;
}

/* Takes a free entry. If no entry is free, takes the entry of a stack without open calls. If that
 * stack is used again, it counts as new, and its bounds are guessed. NULL: each stack has open
 * calls or a thread on it, or a search has found this shortly before (FULL). */
static struct pb_stack *take_any(void)
{
	struct pb_stack *s;

	if (pb_unlikely(pb_process->no_stack)) {
		pb_process->no_stack--;
		return NULL;
	}
	for (int reserved = 0; reserved < 2; reserved++) {
		s = take_free(reserved);
		if (s)
			return s;
	}
	for (int exact = 0; exact < 2; exact++) {
		for (s = pb_stacks; s < pb_stacks + PB_MAX_STACKS; s++)
			if (s->exact == exact && take_unused(s))
				return s;
	}
	__atomic_store_n(&pb_process->new_stacks, PB_MAX_STACKS, __ATOMIC_RELAXED);
	__atomic_store_n(&pb_process->no_stack, FULL, __ATOMIC_RELAXED);
	return NULL;
}

static void fill(struct pb_stack *s, uint64_t lo, uint64_t hi, bool exact)
{
	s->lo = lo;
	s->hi = hi;
	s->exact = exact;
	s->alternate = false;
	s->back = NULL;
	s->guard = PB_TOLD_GUARD;
	s->within = NULL;
	s->thread = NULL;
	pb_chain_end(s);
	pb_chain_begin(s);
}

struct pb_stack *pb_stack_take(uint64_t lo, uint64_t hi, bool exact)
{
	struct pb_stack *s = take_any();

	if (s)
		fill(s, lo, hi, exact);
	return s;
}

/* The id must name no other stack of the session. Processes in different PID namespaces may have
 * the same PID, and PIDs are used again. So the id has the serial of the thread that fills the
 * entry. A thread without a serial (with --no-fork) writes no records. */
void pb_stack_set_filled(const struct pb_thread *t, struct pb_stack *s)
{
	uint64_t id = (uint64_t)t->w.serial << INDEX_BITS |
		      (uint64_t)(s - pb_stacks + PB_STACK_FILLED);

	__atomic_store_n(&s->id, id, __ATOMIC_RELEASE);
}

bool pb_stack_belongs_to(const struct pb_thread *other, const struct pb_thread *t,
			 const struct pb_stack *s, uint64_t slot)
{
	uint64_t innermost, outermost;
	bool runs;

	if (s->exact || s == &t->own || !other || other == t)
		return false;
	runs = __atomic_load_n(&other->stack, __ATOMIC_SEQ_CST) == s;
	innermost = pb_chain_innermost(other, s);
	outermost = pb_chain_outermost(s);
	if (!innermost || !outermost)	/* the stack has no open call, or its only call begins or
					 * ends at this moment */
		return runs || !pb_chain_is_empty(s);
	if (slot < innermost)
		return runs || innermost - slot > CONTINUES;
	return slot > outermost && (runs || slot - outermost > CONTINUES);
}

struct pb_stack *pb_stack_overlapping(struct pb_stack *after, uint64_t lo, uint64_t hi)
{
	uint32_t nr = __atomic_load_n(&pb_process->nr_stacks, __ATOMIC_ACQUIRE);

	for (uint32_t i = after ? (uint32_t)(after - pb_stacks) + 1 : 0; i < nr; i++)
		if (pb_stack_is_filled(&pb_stacks[i]) && pb_stacks[i].lo < hi &&
		    lo < pb_stacks[i].hi)
			return &pb_stacks[i];
	return NULL;
}
