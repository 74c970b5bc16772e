/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the stack that holds an address. A stack that the program reported takes precedence over
 * the thread's own stack. The thread's own stack takes precedence over stacks with guessed bounds,
 * unless its own bounds are guessed, too. The search goes through the whole table, so a cache keeps
 * its result for each page. See doc/design/threads.md, "Stacks, coroutines, alternate stacks".
 */
#include "base/mem.h"
#include "engine/graph/chains.h"
#include "engine/graph/stack.h"
#include "engine/graph/thread_state.h"

#define GUESS_NEAR	(256ul << 10)
#define PAGE_SHIFT	12
#define NR_FOUND	32768

/* The cache. As a hint, it holds for each page the stack on which an address of the page was last
 * found. */
static uint16_t found[NR_FOUND];
_Static_assert(PB_MAX_STACKS <= 1 << 16, "found[]");

static uint16_t *found_at(uint64_t slot)
{
	return &found[(slot >> PAGE_SHIFT ^ slot >> (PAGE_SHIFT + 15)) % NR_FOUND];
}

void pb_stack_forget_found(void)
{
	memset(found, 0, sizeof(found));
}

/* If stack s was made in a frame of a thread's own stack, returns whether that frame was left. From
 * then on, the memory of s is part of the thread's own stack again. */
static bool frame_is_gone(const struct pb_stack *s)
{
	const struct pb_open_call *c = s->within;

	/* the return addresses are compared too, because without a clock all calls have the same
	 * start */
	return c && (c->word < (int64_t)s->hi ||
		     c->start != s->within_start || c->ret != s->within_ret);
}

static bool is_usable(const struct pb_stack *s)
{
	return pb_stack_is_filled(s) && !s->closing;
}

/* Returns the reported stack that holds the address; NULL: there is none. If the search meets a
 * stack whose frame was left, *gone gets that stack. */
static struct pb_stack *find_reported(uint64_t slot, struct pb_stack **gone)
{
	uint32_t nr = __atomic_load_n(&pb_process->nr_stacks, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < nr; i++) {
		struct pb_stack *s = &pb_stacks[i];

		if (!pb_stack_holds(s, slot) || !s->exact || !is_usable(s))
			continue;
		if (!frame_is_gone(s))
			return s;
		*gone = s;
	}
	return NULL;
}

/* Returns a stack that holds the address, or NULL. find_reported() has found none, so the bounds of
 * this stack are guessed, or the frame from which it was reported is gone. *near gets a stack with
 * guessed bounds that begins not far above the address, or NULL. */
static struct pb_stack *find_guessed(uint64_t slot, struct pb_stack **near)
{
	uint32_t nr = __atomic_load_n(&pb_process->nr_stacks, __ATOMIC_ACQUIRE);

	*near = NULL;
	for (uint32_t i = 0; i < nr; i++) {
		struct pb_stack *s = &pb_stacks[i];

		if (pb_stack_holds(s, slot) && is_usable(s))
			return s;
		if (s->lo - slot < GUESS_NEAR && slot < s->lo && !s->exact && is_usable(s))
			*near = s;
	}
	return NULL;
}

/* Adds a stack with the guessed bounds [lo, hi). */
static struct pb_stack *guess(const struct pb_thread *t, uint64_t lo, uint64_t hi)
{
	struct pb_stack *s = pb_stack_take(lo, hi, false);

	if (s)
		pb_stack_set_filled(t, s);
	return s;
}

/* In a forked child, adds the stack that holds the slot, if an ancestor knew it. Its bounds and
 * open calls are those that it had before the fork. NULL: no ancestor knew such a stack. */
static struct pb_stack *inherit(const struct pb_thread *t, uint64_t slot)
{
	struct pb_stack *s;

	if (pb_likely(!pb_chain_is_left(slot)))
		return NULL;
	s = pb_stack_take(slot - PB_GUESS_BELOW, slot + PB_GUESS_ABOVE, false);
	if (!s)
		return NULL;
	pb_chain_inherit(s, slot);
	pb_stack_set_filled(t, s);
	return s;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* s has guessed bounds, and belongs to another thread. Makes the part of s around the slot a stack
 * of its own. The slots of all calls that are open on s stay in s. So the returns of these calls
 * are found even if the two parts are really one stack. */
static struct pb_stack *cut_off(const struct pb_thread *t, struct pb_stack *s, uint64_t slot)
{
	uint64_t outermost = pb_chain_outermost(s), innermost = pb_chain_innermost(s->thread, s);
	uint64_t hi = slot + PB_GUESS_ABOVE;

	if (outermost && slot > outermost) {
		s->hi = outermost + 8;
		pb_chain_set_bounds(s);
		return guess(t, s->hi, hi);
	}
	if (innermost > slot)
		hi = least(hi, innermost);
	if (slot < s->lo)
		hi = least(hi, s->lo);	/* s doesn't hold the slot, it is only near */
	else
		s->lo = least(hi, s->hi);
	pb_chain_set_bounds(s);
	return guess(t, slot - PB_GUESS_BELOW, hi);
}

static struct pb_stack *search(struct pb_thread *t, uint64_t slot, struct pb_stack **gone)
{
	struct pb_stack *s = find_reported(slot, gone), *near;

	if (s)
		return s;
	if (pb_stack_holds(&t->own, slot) && t->own.exact)
		return &t->own;
	/* The child may have guessed bounds that hold the slot, too. But an ancestor knew more of
	 * this memory. */
	s = inherit(t, slot);
	if (s)
		return s;
	s = find_guessed(slot, &near);
	if (!s && pb_stack_holds(&t->own, slot))
		return &t->own;
	if ((s || near) && pb_stack_is_anothers(t, s ? s : near, slot))
		return cut_off(t, s ? s : near, slot);
	if (!s && near) {
		near->lo = slot - 4096;
		pb_chain_set_bounds(near);
		s = near;
	}
	return s ? s : guess(t, slot - PB_GUESS_BELOW, slot + PB_GUESS_ABOVE);
}

struct pb_stack *pb_stack_find(struct pb_thread *t, uint64_t slot, struct pb_stack **gone)
{
	struct pb_stack *s = &pb_stacks[*found_at(slot)];

	if (t->own.exact && !pb_process->holes && pb_stack_holds(&t->own, slot))
		return &t->own;
	if (pb_stack_holds(s, slot) && is_usable(s) &&
	    (s->exact ? !frame_is_gone(s) :
			!pb_stack_holds(&t->own, slot) && !pb_stack_is_anothers(t, s, slot)))
		return s;
	s = search(t, slot, gone);
	if (s && s != &t->own)
		*found_at(slot) = (uint16_t)(s - pb_stacks);
	return s;
}
