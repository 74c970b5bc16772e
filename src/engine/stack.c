/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/stack.h"
#include "engine/chains.h"
#include "engine/thread.h"

#define GUESS_NEAR	(256ul << 10)
#define TOLD_GUARD	4096		/* a told stack's first page may be its guard */
#define FILLED		2		/* ids from here on */

struct pb_stack *pb_stacks;

static bool is_filled(const struct pb_stack *s)
{
	return __atomic_load_n(&s->id, __ATOMIC_ACQUIRE) >= FILLED;
}

bool pb_stack_is_idle(const struct pb_stack *s)
{
	return !s->thread || s->thread->stack != s;
}

/* This, and pb_stack_visit(), pair with pb_thread_use_stack(): one of the two
 * sees what the other did. */
void pb_stack_drop(struct pb_stack *s)
{
	uint64_t id;

	if (s->closing)
		return;
	id = __atomic_exchange_n(&s->id, 0, __ATOMIC_SEQ_CST);
	if (!pb_stack_is_idle(s))
		__atomic_store_n(&s->id, id, __ATOMIC_SEQ_CST);
}

static bool take(struct pb_stack *s, uint64_t id)
{
	return __atomic_compare_exchange_n(&s->id, &id, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static bool is_empty(const struct pb_stack *s)
{
	return pb_chain_is_empty(s);
}

/* One that is nobody's; else one on which no call is open (if it is used again
 * it is a new one, whose bounds are guessed). NULL: all have open calls. */
static struct pb_stack *take_any(void)
{
	for (uint32_t i = 0; i < PB_MAX_STACKS; i++) {
		uint32_t nr = __atomic_load_n(&pb_process->nr_stacks, __ATOMIC_RELAXED);

		if (!take(&pb_stacks[i], 0))
			continue;
		while (nr <= i && !__atomic_compare_exchange_n(&pb_process->nr_stacks, &nr, i + 1,
				false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
		return &pb_stacks[i];
	}
	for (int exact = 0; exact < 2; exact++) {
		for (uint32_t i = 0; i < PB_MAX_STACKS; i++) {
			struct pb_stack *s = &pb_stacks[i];

			if (is_filled(s) && s->exact == exact && is_empty(s) &&
			    !s->closing && pb_stack_is_idle(s) && take(s, s->id))
				return s;
		}
	}
	return NULL;
}

static void fill(struct pb_stack *s, uint64_t lo, uint64_t hi, bool exact)
{
	s->lo = lo;
	s->hi = hi;
	s->exact = exact;
	s->guard = TOLD_GUARD;
	s->within = NULL;
	s->thread = NULL;
	pb_chain_end(s);
	pb_chain_begin(s);
}

static void set_filled(struct pb_stack *s)
{
	__atomic_store_n(&s->id, (uint64_t)pb_process->pid << 24 | (uint64_t)(s - pb_stacks + 1),
			 __ATOMIC_RELEASE);
}

/* The frame that it lay in was left: its memory is the own stack's again. */
static bool frame_is_gone(const struct pb_stack *s)
{
	return s->within && (s->within->word < (int64_t)s->hi || s->within->start != s->within_start);
}

/* The told stack that holds the address. */
static struct pb_stack *find_told(uint64_t slot, struct pb_stack **gone)
{
	uint32_t nr = __atomic_load_n(&pb_process->nr_stacks, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < nr; i++) {
		struct pb_stack *s = &pb_stacks[i];

		if (!is_filled(s) || s->closing || !s->exact || !pb_stack_holds(s, slot))
			continue;
		if (!frame_is_gone(s))
			return s;
		*gone = s;
	}
	return NULL;
}

/* One with guessed bounds that holds the address, or is near enough to. */
static struct pb_stack *find_guessed(uint64_t slot, struct pb_stack **near)
{
	uint32_t nr = __atomic_load_n(&pb_process->nr_stacks, __ATOMIC_ACQUIRE);

	*near = NULL;
	for (uint32_t i = 0; i < nr; i++) {
		struct pb_stack *s = &pb_stacks[i];

		if (!is_filled(s) || s->closing)
			continue;
		if (pb_stack_holds(s, slot))
			return s;
		if (!s->exact && slot < s->lo && s->lo - slot < GUESS_NEAR)
			*near = s;
	}
	return NULL;
}

/* The stack that holds the address, else a new one with guessed bounds. */
static struct pb_stack *find(struct pb_thread *t, uint64_t slot, struct pb_stack **gone)
{
	struct pb_stack *s = find_told(slot, gone), *near;

	if (s)
		return s;
	if (pb_stack_holds(&t->own, slot) && t->own.exact)
		return &t->own;
	s = find_guessed(slot, &near);
	if (s)
		return s;
	if (pb_stack_holds(&t->own, slot))
		return &t->own;
	if (near) {
		near->lo = slot - 4096;
		return near;
	}
	s = take_any();
	if (!s)		/* share one: only the tree suffers */
		return &pb_stacks[(slot >> 16) % PB_MAX_STACKS];
	fill(s, slot - PB_GUESS_BELOW, slot + PB_GUESS_ABOVE, false);
	pb_chain_inherit(s, slot);
	set_filled(s);
	return s;
}

static void set_lo(struct pb_thread *t, const struct pb_stack *s)
{
	t->lo = s->lo;
}

struct pb_stack *pb_thread_other_stack(struct pb_thread *t, uint64_t slot, struct pb_stack **gone)
{
	struct pb_stack *s, *old = t->stack;

	*gone = NULL;
	if (slot >= t->lo && slot < old->hi && !(pb_process->holes && old == &t->own))
		return NULL;
	s = find(t, slot, gone);
	if (s != old)
		return s;
	set_lo(t, s);		/* it may have grown */
	return NULL;
}

static void go_to(struct pb_thread *t, struct pb_stack *s, uint64_t id)
{
	t->stack = s;
	t->top = s->top;
	t->w.stack = id;
	pb_writer_put_stack(&t->w, id);
	set_lo(t, s);
}

/* As a hint: the words of its calls say which one it is. */
static void keep_top(struct pb_thread *t, struct pb_stack *s)
{
	if (pb_open_segment_of(t->top)->stack == s)
		s->top = t->top;
}

/* The stack keeps its innermost call, unless another thread has taken the stack along
 * already. */
static void leave(struct pb_thread *t)
{
	if (t->stack->thread == t)
		keep_top(t, t->stack);
}

bool pb_thread_use_stack(struct pb_thread *t, struct pb_stack *s)
{
	struct pb_thread *last = s->thread;
	struct pb_stack *old = t->stack;
	uint64_t id;

	leave(t);
	if (last && last != t && last->stack == s && s != &t->own)
		keep_top(last, s);
	t->stack = s;
	__atomic_store_n(&s->thread, t, __ATOMIC_SEQ_CST);
	id = __atomic_load_n(&s->id, __ATOMIC_SEQ_CST);
	if (id < FILLED || __atomic_load_n(&s->closing, __ATOMIC_SEQ_CST)) {
		t->stack = old;
		return false;
	}
	go_to(t, s, id);
	return true;
}

bool pb_stack_return(struct pb_thread *t, struct pb_stack *s)
{
	if (s->thread != t && s != t->visiting)
		return pb_thread_use_stack(t, s);
	leave(t);
	go_to(t, s, s->id);
	return true;
}

bool pb_stack_visit(struct pb_thread *t, struct pb_stack *s)
{
	uint64_t id = s->id;
	bool no = false;

	if (!__atomic_compare_exchange_n(&s->closing, &no, true, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return false;
	if (id < FILLED || !pb_stack_is_idle(s) || is_empty(s) || t->visiting) {
		__atomic_store_n(&s->closing, false, __ATOMIC_RELEASE);
		return false;
	}
	t->visiting = s;
	leave(t);
	go_to(t, s, id);
	return true;
}

void pb_stack_leave(struct pb_thread *t, struct pb_stack *s, struct pb_stack *back)
{
	uint64_t id = back->id;

	if (t->stack == s) {
		keep_top(t, s);
		go_to(t, back, id);
	}
	t->visiting = NULL;
	__atomic_store_n(&s->closing, false, __ATOMIC_RELEASE);
}

struct pb_stack *pb_stack_overlapping(struct pb_stack *after, uint64_t lo, uint64_t hi)
{
	uint32_t nr = __atomic_load_n(&pb_process->nr_stacks, __ATOMIC_ACQUIRE);

	for (uint32_t i = after ? (uint32_t)(after - pb_stacks) + 1 : 0; i < nr; i++)
		if (is_filled(&pb_stacks[i]) && pb_stacks[i].lo < hi && lo < pb_stacks[i].hi)
			return &pb_stacks[i];
	return NULL;
}

/* The innermost call on t's own stack that began above s. */
static void set_within(const struct pb_thread *t, struct pb_stack *s)
{
	struct pb_open_call *c = t->stack == &t->own ? t->top : t->own.top;

	for (c = pb_open_innermost(c); !pb_open_is_root(c); c = pb_open_parent(c))
		if (pb_open_is_live(c) && c->word >= (int64_t)s->hi)
			break;
	s->within = pb_open_is_root(c) ? NULL : c;
	s->within_start = s->within ? c->start : 0;
}

void pb_stack_add(struct pb_thread *t, uint64_t lo, uint64_t hi)
{
	struct pb_stack *s = take_any();

	if (!s)
		return;
	fill(s, lo, hi, true);
	if (pb_stack_holds(&t->own, lo)) {
		pb_process->holes = true;
		t->w.own_lo = t->w.own_hi = 0;	/* addresses there don't nest any more */
		set_within(t, s);
	}
	set_filled(s);
}
