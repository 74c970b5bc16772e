/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of stacks. For each stack, the table says which thread is on the stack. Threads take
 * and drop entries without a lock: an entry belongs to the thread that changes its id to 1. A
 * thread may come to a stack while another thread closes or drops the stack. Each of these two
 * threads first writes what it does, and then looks for the other thread. So at least one of them
 * sees the other thread, and gives way.
 */
#include "engine/graph/stack.h"
#include "engine/graph/chains.h"
#include "engine/graph/period.h"

#define TOLD_GUARD	4096		/* a reported stack's first page may be its guard */
/* If a coroutine goes on in another thread, the slot of its next call is near the slot of its
 * innermost open call: at most this many bytes away. */
#define CONTINUES	8192
#define FULL		1024		/* after the table was full: number of requests that fail
					 * without a search */

struct pb_stack *pb_stacks;

bool pb_stack_is_idle(const struct pb_stack *s)
{
	return !s->thread || s->thread->stack != s;
}

/* This function, pb_stack_visit() and pb_thread_use_stack() write first, and then look for other
 * threads. So if two threads meet, at least one sees what the other did. */
void pb_stack_drop(struct pb_stack *s)
{
	uint64_t id;

	if (s->closing)
		return;
	id = __atomic_exchange_n(&s->id, 0, __ATOMIC_SEQ_CST);
	if (!pb_stack_is_idle(s)) {
		__atomic_store_n(&s->id, id, __ATOMIC_SEQ_CST);
		return;
	}
	if (s - pb_stacks < pb_process->stack_hint)
		pb_process->stack_hint = (uint32_t)(s - pb_stacks);
	pb_process->no_stack = 0;
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

static struct pb_stack *take_free(void)
{
	uint32_t from = __atomic_load_n(&pb_process->stack_hint, __ATOMIC_RELAXED);

	for (uint32_t n = 0; n < PB_MAX_STACKS; n++) {
		uint32_t i = (from + n) % PB_MAX_STACKS, nr;

		if (pb_stacks[i].id || !take(&pb_stacks[i], 0))
			continue;
		nr = __atomic_load_n(&pb_process->nr_stacks, __ATOMIC_RELAXED);
		while (nr <= i && !__atomic_compare_exchange_n(&pb_process->nr_stacks, &nr, i + 1,
				false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
		__atomic_store_n(&pb_process->stack_hint, i + 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&pb_process->new_stacks, 1, __ATOMIC_RELAXED);
		return &pb_stacks[i];
	}
	return NULL;
}

/* Takes a free entry. If no entry is free, takes the entry of a stack without open calls. If that
 * stack is used again, it counts as new, and its bounds are guessed. NULL: all stacks have open
 * calls. */
static struct pb_stack *take_any(void)
{
	struct pb_stack *s;

	if (pb_unlikely(pb_process->no_stack)) {
		pb_process->no_stack--;
		return NULL;
	}
	s = take_free();
	if (s)
		return s;
	for (int exact = 0; exact < 2; exact++) {
		for (s = pb_stacks; s < pb_stacks + PB_MAX_STACKS; s++)
			if (pb_stack_is_filled(s) && s->exact == exact && is_empty(s) &&
			    !s->closing && pb_stack_is_idle(s) && take(s, s->id))
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
	s->guard = TOLD_GUARD;
	s->within = NULL;
	s->thread = NULL;
	pb_chain_end(s);
	pb_chain_begin(s);
}

struct pb_stack *pb_stack_take(uint64_t lo, uint64_t hi)
{
	struct pb_stack *s = take_any();

	if (s)
		fill(s, lo, hi, false);
	return s;
}

void pb_stack_set_filled(struct pb_stack *s)
{
	__atomic_store_n(&s->id, (uint64_t)pb_process->pid << 24 | (uint64_t)(s - pb_stacks + 1),
			 __ATOMIC_RELEASE);
}

/* Like pb_stack_is_anothers(), but only for the thread `other`. */
static bool belongs_to(const struct pb_thread *other, const struct pb_thread *t,
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
		return runs || !is_empty(s);
	if (slot < innermost)
		return runs || innermost - slot > CONTINUES;
	return slot > outermost && (runs || slot - outermost > CONTINUES);
}

bool pb_stack_is_anothers(const struct pb_thread *t, const struct pb_stack *s, uint64_t slot)
{
	return belongs_to(s->thread, t, s, slot);
}

/* While t changes stacks, each hit of t searches for the stack that it is on. */
static void unsettle(struct pb_thread *t)
{
	pb_barrier();
	*(volatile uint64_t *)&t->lo = PB_LO_UNSETTLED;
	pb_barrier();
}

static void settle(struct pb_thread *t)
{
	pb_barrier();
	t->bottom = pb_stack_bottom(t->stack);
	pb_period_set_lo(t);
}

struct pb_stack *pb_thread_other_stack(struct pb_thread *t, uint64_t slot, struct pb_stack **gone)
{
	struct pb_stack *s, *old = t->stack;

	*gone = NULL;
	if (slot >= t->lo && slot < old->hi && !(pb_process->holes && old == &t->own))
		return NULL;
	s = pb_stack_find(t, slot, gone);
	if (!s) {
		pb_thread_no_stack(t, slot);
		return NULL;
	}
	if (s != old || t->lo == PB_LO_UNSETTLED)
		return s;
	settle(t);		/* the stack may have grown */
	return NULL;
}

/* A handler may interrupt this function and leave by a jump. So until everything is stored, each
 * hit searches for the stack that it is on. */
static void go_to(struct pb_thread *t, struct pb_stack *s, uint64_t id)
{
	unsettle(t);
	t->stack = s;
	pb_barrier();
	t->top = s->top;
	t->w.stack = id;
	pb_writer_put_stack(&t->w, id);
	settle(t);
}

/* Stores t->top in s, the stack of t, as a hint. After an interruption t->top may still belong to
 * another stack. In this case it isn't stored. */
static void keep_top(struct pb_thread *t, struct pb_stack *s)
{
	if (pb_open_segment_of(t->top)->stack == s)
		s->top = t->top;
}

/* Stores t->top in the stack that t leaves, unless another thread has already taken the stack
 * over. */
static void leave(struct pb_thread *t)
{
	if (t->stack->thread == t)
		keep_top(t, t->stack);
}

/* t has just taken s from the thread `last`. If `last` has come back to s meanwhile, gives s back
 * to `last`. */
static bool gives_back(struct pb_thread *t, struct pb_thread *last, struct pb_stack *s,
		       uint64_t slot)
{
	if (!belongs_to(last, t, s, slot))
		return false;
	__atomic_compare_exchange_n(&s->thread, &t, last, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return true;
}

/* t comes to s. Returns whether a handler of which the agent doesn't know has brought t there. */
static bool is_unexpected(struct pb_thread *t, const struct pb_stack *s)
{
	bool known = pb_stack_holds(s, t->expected);

	if (s->alternate && known)
		t->expected = 0;
	return s->alternate && !known;
}

bool pb_thread_use_stack(struct pb_thread *t, struct pb_stack *s, uint64_t slot)
{
	struct pb_thread *last = __atomic_load_n(&s->thread, __ATOMIC_ACQUIRE);
	struct pb_stack *old = t->stack;
	uint64_t id;

	leave(t);
	if (last && last != t && last->stack == s && s != &t->own)
		keep_top(last, s);
	unsettle(t);
	__atomic_store_n(&t->stack, s, __ATOMIC_SEQ_CST);
	/* if two threads come to s at once, one of them goes to another stack */
	if (__atomic_compare_exchange_n(&s->thread, &last, t, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST) &&
	    !gives_back(t, last, s, slot)) {
		id = __atomic_load_n(&s->id, __ATOMIC_SEQ_CST);
		if (id >= PB_STACK_FILLED && !__atomic_load_n(&s->closing, __ATOMIC_SEQ_CST)) {
			if (s != old)
				s->back = is_unexpected(t, s) ? old : NULL;
			go_to(t, s, id);
			return true;
		}
	}
	t->stack = old;
	settle(t);
	return false;
}

void pb_thread_no_stack(struct pb_thread *t, uint64_t slot)
{
	struct pb_stack *s = &t->nowhere;

	leave(t);
	s->lo = slot - PB_GUESS_BELOW;
	s->hi = slot + PB_GUESS_ABOVE;
	s->thread = t;
	pb_chain_none(s);
	go_to(t, s, 1ul << 62 | t->w.serial);
}

bool pb_stack_return(struct pb_thread *t, struct pb_stack *s, uint64_t slot)
{
	if (s->thread != t && s != t->visiting)
		return pb_thread_use_stack(t, s, slot);
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
	if (id < PB_STACK_FILLED || !pb_stack_is_idle(s) || is_empty(s) || t->visiting) {
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
		if (pb_stack_is_filled(&pb_stacks[i]) && pb_stacks[i].lo < hi &&
		    lo < pb_stacks[i].hi)
			return &pb_stacks[i];
	return NULL;
}

/* Looks at the calls on t's own stack that have slots above s. Notes the innermost of these calls
 * in s. */
static void set_within(const struct pb_thread *t, struct pb_stack *s)
{
	struct pb_open_call *c = t->stack == &t->own ? t->top : t->own.top;

	for (c = pb_open_innermost(c); !pb_open_is_root(c); c = pb_open_parent(c))
		if (pb_open_is_live(c) && c->word >= (int64_t)s->hi)
			break;
	s->within = pb_open_is_root(c) ? NULL : c;
	s->within_start = s->within ? c->start : 0;
	s->within_ret = s->within ? c->ret : 0;
}

void pb_stack_go_back(struct pb_thread *t, uint64_t slot)
{
	struct pb_stack *back = t->stack->back;

	if (pb_unlikely(back) && back->thread == t && pb_open_is_root(pb_open_innermost(t->top)))
		pb_thread_use_stack(t, back, slot);
}

void pb_stack_no_alternate(struct pb_thread *t)
{
	struct pb_stack *s = t->alternate;

	/* meanwhile the entry may have become another thread's stack */
	if (s && (!s->thread || s->thread == t))
		s->alternate = false;
	t->alternate = NULL;
}

void pb_stack_disabled(void)
{
	if (pb_tls->top)
		pb_stack_no_alternate(pb_tls);
}

void pb_stack_add(struct pb_thread *t, uint64_t lo, uint64_t hi, bool alternate)
{
	struct pb_stack *s = take_any();

	if (alternate)
		pb_stack_no_alternate(t);
	if (!s)
		return;
	fill(s, lo, hi, true);
	if (alternate) {
		s->alternate = true;
		t->alternate = s;
	}
	pb_stack_forget_found();
	if (pb_stack_holds(&t->own, lo)) {
		pb_process->holes = true;
		t->w.own_lo = t->w.own_hi = 0;	/* now that the stack has a hole, a lower address
						 * doesn't mean an inner call */
		set_within(t, s);
	}
	pb_stack_set_filled(s);
}
