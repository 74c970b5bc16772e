/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Notes in a thread's state which stack the thread is on. In this folder, to move a thread to a
 * stack means to change this note. A thread may come to a stack while another thread closes or
 * drops the stack. Each of these two threads first stores a mark of its action, and then looks for
 * the other thread's mark. So at least one of them sees the other's mark, and gives way.
 */
#include "engine/graph/stack.h"
#include "engine/graph/chains.h"
#include "engine/graph/period.h"

#define MOST_TRIES	100	/* a thread that returns from a visit waits this often for another
				 * thread that gives way */

/* Marks t as changing stacks. Until settle(), each hit of t that reaches C code searches for the
 * stack that has the hit's slot. */
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

/* A handler may interrupt this function and leave by a jump. So until everything is stored, `lo`
 * has the value that unsettle() stores, and t's next hit in C code searches for its stack. */
static void go_to(struct pb_thread *t, struct pb_stack *s, uint64_t id)
{
	unsettle(t);
	t->stack = s;
	pb_barrier();
	t->top = s->top;
	t->w.stack = id;
	pb_writer_put_untimed(&t->w, pb_ext_record(STACK, 0, 0), &id, 1);
	settle(t);
}

/* Stores t->top in s, the stack of t, as a hint. Doesn't store it in two cases. After an
 * interruption, t->top may still belong to another stack. If t is dead and its state was freed,
 * t->top is NULL. */
static void keep_top(struct pb_thread *t, struct pb_stack *s)
{
	struct pb_open_call *top = __atomic_load_n(&t->top, __ATOMIC_RELAXED);

	if (top && pb_open_segment_of(top)->stack == s)
		s->top = top;
}

/* Stores t->top in the stack that t leaves, unless another thread has already taken the stack
 * over. */
static void leave(struct pb_thread *t)
{
	if (t->stack->thread == t)
		keep_top(t, t->stack);
}

/* t has just taken s from the thread `last`. If `last` has come back to s meanwhile, gives s back
 * to `last`, and returns true. */
static bool gives_back(struct pb_thread *t, struct pb_thread *last, struct pb_stack *s,
		       uint64_t slot)
{
	if (!pb_stack_belongs_to(last, t, s, slot))
		return false;
	__atomic_compare_exchange_n(&s->thread, &t, last, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return true;
}

/* t is noted in s. Returns the ID of s. Returns 0 if another thread closes the calls of s, or has
 * dropped s or taken the entry for another stack meanwhile. Then t must leave s. */
static uint64_t usable_id(const struct pb_thread *t, const struct pb_stack *s)
{
	uint64_t id = __atomic_load_n(&s->id, __ATOMIC_SEQ_CST);

	if (id < PB_STACK_FILLED || __atomic_load_n(&s->closing, __ATOMIC_SEQ_CST))
		return 0;
	/* an entry that was filled meanwhile has the ID of another stack, but not the note of t */
	return __atomic_load_n(&s->thread, __ATOMIC_SEQ_CST) == t ? id : 0;
}

/* t comes to s. Returns whether an unseen handler has brought t there. */
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
		id = usable_id(t, s);
		if (id) {
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
	go_to(t, s, s->id);
}

static uint32_t closer(const struct pb_thread *t)
{
	return pb_thread_number(t) + 1;
}

static bool visits(const struct pb_thread *t, const struct pb_stack *s)
{
	return s == t->visiting && s->closing == closer(t);
}

bool pb_stack_return(struct pb_thread *t, struct pb_stack *s, uint64_t slot)
{
	struct pb_stack *old = t->stack;
	uint64_t id;

	if (s->thread != t && !visits(t, s))
		return pb_thread_use_stack(t, s, slot);
	leave(t);
	unsettle(t);
	__atomic_store_n(&t->stack, s, __ATOMIC_SEQ_CST);
	id = visits(t, s) ? s->id : usable_id(t, s);
	if (!id) {
		t->stack = old;
		settle(t);
		return false;
	}
	go_to(t, s, id);
	return true;
}

void pb_stack_end_visit(struct pb_thread *t)
{
	uint32_t self = closer(t);

	if (t->visiting)
		__atomic_compare_exchange_n(&t->visiting->closing, &self, 0, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	t->visited_from = NULL;
	pb_barrier();
	*(struct pb_stack *volatile *)&t->visiting = NULL;
}

/* Returns an address on the stack from which the visit is made. When a hit has this address, or a
 * higher one, the visit's frame is gone. An unseen handler may have changed t->w.slot to a lower
 * address than that of this frame. */
static uint64_t visit_from(const struct pb_thread *t)
{
	uint64_t frame = (uint64_t)__builtin_frame_address(0), slot = t->w.slot;

	return frame > slot && pb_stack_holds(t->stack, frame) ? frame : slot;
}

/* A handler may leave this function by a jump. So `visiting` is set as long as `closing` has the
 * number of t. While it is set, hits in handlers visit no stack, so they don't change visited_at
 * and visited_from. visited_from is set last, because it shows that visited_at is valid. */
bool pb_stack_visit(struct pb_thread *t, struct pb_stack *s)
{
	uint32_t none = 0;
	uint64_t id;

	if (t->visiting)
		return false;
	*(struct pb_stack *volatile *)&t->visiting = s;
	pb_barrier();
	t->visited_at = visit_from(t);
	pb_barrier();
	*(struct pb_stack *volatile *)&t->visited_from = t->stack;
	pb_barrier();
	if (!__atomic_compare_exchange_n(&s->closing, &none, closer(t), false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED)) {
		pb_stack_end_visit(t);
		return false;
	}
	id = __atomic_load_n(&s->id, __ATOMIC_SEQ_CST);
	if (id < PB_STACK_FILLED || !pb_stack_is_idle(s) || pb_chain_is_empty(s)) {
		pb_stack_end_visit(t);
		return false;
	}
	leave(t);
	go_to(t, s, id);
	return true;
}

/* Returns to the stack from which t has made a visit. False: another thread has dropped that stack
 * meanwhile. This may happen if t has made two visits while the other thread looked for t. A thread
 * that only tries to drop the stack, or to close its calls, gives up when it sees t there. */
static bool come_back(struct pb_thread *t, struct pb_stack *back)
{
	uint64_t id = 0;

	unsettle(t);
	__atomic_store_n(&t->stack, back, __ATOMIC_SEQ_CST);
	for (int tries = 0; !id && tries < MOST_TRIES; tries++) {
		if (tries)
			pb_cpu_pause();
		id = usable_id(t, back);
	}
	if (id)
		go_to(t, back, id);
	return id;
}

void pb_stack_leave(struct pb_thread *t, struct pb_stack *s, struct pb_stack *back)
{
	if (t->stack == s) {
		keep_top(t, s);
		if (!come_back(t, back))
			pb_thread_no_stack(t, t->w.slot);
	}
	pb_stack_end_visit(t);
}

/* If alternate stacks lie inside the stack, an address above `visited_at` doesn't show that the
 * visit's frame is gone. The guessed bounds of a stack may include a part of the stack next to
 * it. */
bool pb_stack_visit_was_left(const struct pb_thread *t, uint64_t slot)
{
	const struct pb_stack *from = t->visited_from;

	return from && slot >= t->visited_at && pb_stack_holds(from, slot) &&
	       pb_stack_holds(from, t->visited_at) && !(pb_process->holes && from == &t->own) &&
	       !(t->alternate && t->alternate != from && pb_stack_holds(t->alternate, slot));
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

	/* s is an entry of the table of stacks. Meanwhile the entry may have become another
	 * thread's stack */
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
	struct pb_stack *s = pb_stack_take(lo, hi, true);

	if (alternate)
		pb_stack_no_alternate(t);
	if (!s)
		return;
	if (alternate) {
		s->alternate = true;
		t->alternate = s;
	}
	pb_stack_forget_found();
	if (pb_stack_holds(&t->own, lo)) {
		pb_process->holes = pb_had_holes = true;
		t->w.own_lo = t->w.own_hi = 0;	/* now that the stack has a hole, a lower address
						 * doesn't mean an inner call */
		set_within(t, s);
	}
	pb_stack_set_filled(t, s);
}
