/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The slow path of the function graph. The assembly of entries and exits calls it, and so do the
 * compiler's hooks. It opens and closes calls, and handles the cases that the assembly leaves to
 * C: changes of the stack, calls that are skipped by a longjmp or an exception, the limit of depth,
 * and records that need the parent's ENTRY. call_records.c writes the records, and applies the
 * limit of time (-t).
 *
 * The idea is that a call is identified by its return slot and return address. At a hit, all calls
 * of the same stack with slots below the hit's slot are over, because the stack pointer is above
 * their slots.
 *
 * A signal handler may interrupt each function of this file at any instruction. The handler may
 * make calls of its own on the same stack, and then return or leave by a jump. So each change of a
 * call becomes visible by one instruction. This is a store or a compare-and-swap on the call's word
 * or on its state.
 *
 * Several functions are declared noinline, because the stack has little room for C code
 * (PB_HIT_ROOM). If they were inlined, their variables would lie in their caller's frame, and so
 * would take room also while that caller calls other functions.
 */
#include "engine/graph/calls.h"
#include "arch/arch.h"
#include "base/base.h"
#include "engine/graph/chains.h"
#include "engine/clock.h"
#include "engine/text/ftrace.h"
#include "engine/latch.h"
#include "engine/graph/period.h"
#include "engine/graph/thread_words.h"

#define MOST_TRIES	4	/* if other threads move to a stack at the same time, a thread tries
				 * this many times again to move to the stack */

/* ---- stacks ------------------------------------------------------------------ */

/* Closes the stack's calls of former periods (period.h), which may have ended unseen. If
 * interrupted code is in the middle of changing one of these calls, the stack keeps its old period.
 * Each further hit calls this function again until that code has finished. */
static __attribute__((noinline))
void begin_period(struct pb_thread *t, uint64_t slot, uint32_t period)
{
	if (!pb_open_forget(&t->top, slot, PB_HOOKS(t)))
		return;
	pb_chain_set_period(t->stack, period);
	pb_period_set_lo(t);
}

/* Moves t to the slot's stack. First writes the ENTRY of the old stack's innermost call, so that
 * this ENTRY comes before the records of the new stack. Returns whether t was on another stack. */
static __attribute__((noinline)) bool move_to_stack(struct pb_thread *t, uint64_t slot)
{
	struct pb_stack *gone, *s;
	uint32_t period;

	if (pb_unlikely(t->visiting) && pb_stack_visit_was_left(t, slot))
		pb_stack_end_visit(t);
	for (int tries = 0; ; tries++) {
		struct pb_open_call *c = pb_open_innermost(t->top);

		s = pb_thread_other_stack(t, slot, &gone);
		if (s && pb_call_is_open(c) && c->state == PB_ENTRY_LEAF)
			pb_call_emitted(t, c);
		if (!s || pb_thread_use_stack(t, s, slot))
			break;
		if (tries == MOST_TRIES) {
			pb_thread_no_stack(t, slot);
			break;
		}
	}
	if (gone) {
		pb_calls_close_stack(t, gone, gone->hi - 8);
		pb_stack_drop(gone);
	}
	period = __atomic_load_n(&pb_period, __ATOMIC_RELAXED);
	if (pb_unlikely(t->stack->period != period))
		begin_period(t, slot, period);
	return s;
}

static void switch_stack(struct pb_thread *t, uint64_t slot)
{
	if (move_to_stack(t, slot))
		pb_stacks_look(t);
}

/* ---- entries and exits ------------------------------------------------------- */

static void put_call(struct pb_thread *t, struct pb_site *site, struct pb_open_call *parent)
{
	if (!pb_call_emitted(t, parent))
		pb_writer_lost(&t->w);
	else if (pb_writer_put(&t->w, pb_ext_word(PB_EXT_CALL, 1, site->id, 0), pb_clock(),
			       PB_EXT_TIME_BITS, NULL, 0))
		pb_writer_no_return(&t->w);
}

/* Records the end of call c, whose exit is under way. */
static void put_end(struct pb_thread *t, struct pb_open_call *c, uint64_t now, bool jump)
{
	if (pb_latched)
		pb_writer_stay(&t->w);
	else
		pb_call_put_end(t, c, now, jump);
	pb_barrier();
	*(volatile uint8_t *)&c->record = PB_OPEN_WRITTEN;
	/* with this state c isn't in the tree of calls: calls that eBPF programs make until c is
	 * released aren't callees of c */
	*(volatile uint8_t *)&c->state = PB_ENTRY_PROG;
}

/* Called after the record of c is written. If the return of c has eBPF programs, returns c.
 * Otherwise ends c and goes on with the next call that returns through the same slot. */
static struct pb_open_call *watched(struct pb_thread *t, struct pb_open_call *c, uint64_t *slot)
{
	while (c && c->watch == PB_WATCH_BELOW) {
		pb_open_release(&t->top, c);
		c = pb_open_exit(&t->top, (uint64_t)slot, *slot, PB_HOOKS(t));
	}
	return c;
}

/* Handles a call c whose function ended by a jump to another function. That function will return in
 * place of c's function. known: the return of that function is hooked. */
static void go_on(struct pb_thread *t, struct pb_open_call *c, uint64_t *slot, bool known)
{
	if (known && c->watch && c->watch != PB_WATCH_BELOW) {
		pb_open_keep(c, (uint64_t)slot);
		return;
	}
	if (c->watch && c->watch != PB_WATCH_BELOW)
		__atomic_add_fetch(pb_prog_missed, 1, __ATOMIC_RELAXED);
	pb_open_release(&t->top, c);
}

static bool goes_on(struct pb_thread *t, uint32_t site)
{
	uint64_t before = pb_look_begin(t);
	bool yes = pb_site_goes_on(site);

	pb_look_end(t, before);
	return yes;
}

/* Called when a call begins in the slot. If an open call has the same slot, that call is over. From
 * some functions control may go on to their own entry, or to the next function's entry, without
 * passing an exit (FTRACE_FL_GOES_ON). If the open call's function is one of them, close_tail()
 * records that the open call has ended by a tail call. If not, a jump or an exception has skipped
 * the open call, and end_calls() closes it. */
static void close_tail(struct pb_thread *t, uint64_t *slot)
{
	const struct pb_open_hooks *hooks = PB_HOOKS(t);
	struct pb_open_call *c = pb_open_at(&t->top, (uint64_t)slot, *slot, hooks);

	if (!c || c->state == PB_ENTRY_PROG || !goes_on(t, c->site) ||
	    !(c = pb_open_exit(&t->top, (uint64_t)slot, *slot, hooks)))
		return;
	put_end(t, c, pb_clock(), true);
	/* c's eBPF programs see no return, because c may also have been skipped by a jump */
	go_on(t, c, slot, false);
}

/* Ends those calls of the site that still wait for the return through the slot. The function of
 * such a call has jumped to another function, and the call waits for that function's return. But
 * the site's function is now called again with the same slot. So a jump may have left the other
 * function, which then never returns. Therefore the waiting call ends here, and its eBPF programs
 * miss the return. */
static __attribute__((noinline))
void forget_waiting(struct pb_thread *t, uint64_t *slot, uint32_t site)
{
	const struct pb_open_hooks *hooks = PB_HOOKS(t);
	struct pb_open_call *c;

	while ((c = pb_open_at(&t->top, (uint64_t)slot, *slot, hooks)) && c->site == site &&
	       (c = pb_open_exit(&t->top, (uint64_t)slot, *slot, hooks)))
		go_on(t, c, slot, false);
}

/* Counts the calls that wait for the return through the slot. In the array, they come directly
 * before c. */
static unsigned nr_waiting(const struct pb_open_call *c, uint64_t slot)
{
	unsigned nr = 0;

	for (c = pb_open_below(c); c->word == (int64_t)slot && !pb_open_is_root(c);
	     c = pb_open_below(c))
		nr++;
	return nr;
}

/* Returns the root, or the nearest live call from c outwards that is in the tree of calls. A call
 * that only eBPF programs watch (PB_ENTRY_PROG) isn't in the tree. */
static struct pb_open_call *in_tree(struct pb_open_call *c)
{
	return pb_open_is_root(c) || (pb_open_is_live(c) && c->state != PB_ENTRY_PROG) ? c :
	       pb_call_outer(c);
}

/* Returns the innermost call of the tree. */
static struct pb_open_call *innermost(const struct pb_thread *t)
{
	return in_tree(pb_open_innermost(t->top));
}

/* Tests the same conditions as the assembly's fast path: t is on the slot's stack, all open calls
 * have higher slots, and the next entry is free. If so, no call is over. Returns the innermost
 * call, which is the caller of a call that begins in the slot. NULL: the slow path must find the
 * caller. */
static struct pb_open_call *caller_at(const struct pb_thread *t, uint64_t slot)
{
	struct pb_open_call *c = t->top;

	return slot >= t->lo && c->word > (int64_t)slot && c[1].word == PB_OPEN_FREE &&
	       (pb_open_is_root(c) || pb_open_is_live(c)) ? c : NULL;
}

/* Returns whether a call that the parent makes would be deeper than the limit allows. */
static bool is_too_deep(const struct pb_open_call *parent)
{
	return pb_open_depth(parent) >= pb_max_depth && pb_calls_depth(parent) >= pb_max_depth;
}

/* Returns whether a call that the parent makes is left out of the tree. */
static bool is_outside(const struct pb_open_call *parent, unsigned mode)
{
	return is_too_deep(parent) ||
	       parent->state == PB_ENTRY_SILENT ||
	       (mode & PB_ENTER_NESTED && pb_open_is_root(parent));
}

/* Does what end_at() does after the change of the stack. */
static __attribute__((noinline)) void end_calls(struct pb_thread *t, uint64_t *slot)
{
	close_tail(t, slot);
	pb_open_close(&t->top, (uint64_t)slot, PB_HOOKS(t));
}

/* Ends the calls that are over because a call begins in the slot. */
static void end_at(struct pb_thread *t, uint64_t *slot)
{
	switch_stack(t, (uint64_t)slot);
	end_calls(t, slot);
}

/* Returns an entry for a call that begins in the slot. */
static __attribute__((noinline))
struct pb_open_call *take_entry(struct pb_thread *t, uint64_t *slot)
{
	return pb_open_enter(&t->top, (uint64_t)slot, PB_HOOKS(t));
}

static uint8_t state_of(unsigned mode)
{
	if (mode & PB_ENTER_SILENT)
		return PB_ENTRY_SILENT;
	return mode & PB_ENTER_LAZY ? PB_ENTRY_LAZY : PB_ENTRY_LEAF;
}

/* Fills the entry of a call that is about to begin. Returns whether eBPF programs will run at the
 * call's return. */
static bool begin_call(struct pb_thread *t, struct pb_open_call *c, const struct pb_site *site,
		       const uint64_t *slot, uint64_t ret, uint8_t state, uint16_t watch)
{
	struct pb_open_call *before;
	unsigned waiting = pb_calls_watching ? nr_waiting(c, (uint64_t)slot) : 0;
	/* `last`: c is the outermost call on a stack to which a signal handler brought t. When c
	 * ends, no call is open there, and t may have to go back to its former stack. So the exit
	 * of c must go to C code */
	bool last = pb_unlikely(t->stack->back) && pb_open_is_root(pb_open_below(c));
	uint64_t fields;

	if (waiting >= PB_MAX_WATCHED)
		watch = 0;
	if (state == PB_ENTRY_LEAF)
		pb_call_emitted(t, pb_call_outer(c));
	fields = pb_open_fields(site->id, state,
				!watch && (waiting || last) ? PB_WATCH_BELOW : watch);
	__builtin_memcpy((uint8_t *)c + O_SITE, &fields, sizeof(fields));
	c->ret = ret;
	/* if nothing is recorded and no call is timed, nobody needs the time */
	c->start = state == PB_ENTRY_PROG && !pb_call_ended ? 0 : pb_clock();
	if (state == PB_ENTRY_LEAF)
		pb_writer_leaf(&t->w, site->id, c->start);
	/* if c is the first call of a later segment, the entry before c is the segment's foot. The
	 * foot stands for the last call of the segment before, so it gets that call's state */
	if (c == pb_open_segment_of(c)->call + 1) {
		before = pb_open_parent(c);
		if (before->state != PB_ENTRY_PROG && !pb_call_unemitted(before))
			c[-1].state = before->state;
	}
	pb_open_commit(c, (uint64_t)slot);
	return watch;
}

void pb_calls_enter(struct pb_site *site, uint64_t *slot, unsigned mode)
{
	struct pb_open_call *parent, *c;
	struct pb_thread *t;

	if (pb_latched || !(t = pb_thread_get((uint64_t)slot)))
		return;
	end_at(t, slot);
	parent = innermost(t);
	if (is_outside(parent, mode))
		return;
	if (mode & PB_ENTER_CALL || !(c = take_entry(t, slot))) {
		if (!(mode & (PB_ENTER_SILENT | PB_ENTER_LAZY)))
			put_call(t, site, parent);
		return;
	}
	begin_call(t, c, site, slot, *slot, state_of(mode), 0);
}

bool pb_calls_watch(struct pb_site *site, uint64_t *slot, unsigned mode, uint16_t watch)
{
	struct pb_open_call *caller, *parent = NULL, *c;
	struct pb_thread *t = pb_thread_get((uint64_t)slot);
	bool call, outside;

	if (!t)
		return false;
	if (pb_unlikely(!t->watching)) {
		pb_calls_watching = true;
		pb_thread_words_changed();
	}
	caller = caller_at(t, (uint64_t)slot);
	if (!caller)
		end_at(t, slot);
	/* a PB_ENTER_LIST call isn't in the tree, so it needs no parent. The search for one may
	 * pass many calls that aren't in the tree */
	if (mode != PB_ENTER_LIST)
		parent = caller ? in_tree(caller) : innermost(t);
	outside = !parent || is_outside(parent, mode);
	call = !outside && !(mode & (PB_ENTER_SILENT | PB_ENTER_LAZY));
	if (!caller)
		forget_waiting(t, slot, site->id);
	if (call && mode & PB_ENTER_CALL)
		put_call(t, site, parent);
	outside |= !!(mode & PB_ENTER_CALL);
	c = caller ? pb_open_push(&t->top, caller, (uint64_t)slot) : NULL;
	if (!c)
		c = take_entry(t, slot);
	if (c)
		return begin_call(t, c, site, slot, *slot, outside ? PB_ENTRY_PROG : state_of(mode),
				  watch);
	if (call && !(mode & PB_ENTER_CALL))
		put_call(t, site, parent);
	return false;
}

struct pb_open_call *pb_calls_exit(uint64_t *slot, struct pb_open_call *c, uint64_t now,
				   const void *from)
{
	struct pb_thread *t;

	/* the thread has no open call */
	if (pb_thread_is_new() || !(t = pb_thread_get((uint64_t)slot)))
		return NULL;
	if (!c) {
		switch_stack(t, (uint64_t)slot);
		c = pb_open_exit(&t->top, (uint64_t)slot, *slot, PB_HOOKS(t));
		now = pb_clock();	/* the clock is read after pb_open_exit(), because c must
					 * not end before the skipped calls */
	}
	if (!c)
		return NULL;
	pb_call_report(c, now);
	if (c->state != PB_ENTRY_PROG)
		put_end(t, c, now, from && !pb_exit_pops(from));
	if (pb_likely(!c->watch)) {
		pb_open_release(&t->top, c);
		c = NULL;
	} else if (from && pb_text_is_tail((uint64_t)from)) {
		go_on(t, c, slot, pb_text_tail_returns_on((uint64_t)from));
		c = NULL;
	} else {
		c = watched(t, c, slot);
	}
	if (!c)
		pb_stack_go_back(t, (uint64_t)slot);
	return c;
}

struct pb_open_call *pb_calls_watched(struct pb_open_call *c, uint64_t *slot)
{
	struct pb_thread *t = pb_tls;

	if (pb_likely(t->top && !t->stack->back && pb_open_is_alone(c, (uint64_t)slot))) {
		pb_open_release(&t->top, c);
		return NULL;
	}
	t = pb_thread_get((uint64_t)slot);
	if (!t)
		return NULL;
	pb_open_release(&t->top, c);
	c = watched(t, pb_open_exit(&t->top, (uint64_t)slot, *slot, PB_HOOKS(t)), slot);
	if (!c)
		pb_stack_go_back(t, (uint64_t)slot);
	return c;
}

/* ---- calls that the compiler's hooks report -------------------------------------- */

/* The return slot of a call that a hook reports isn't known. Instead, the call gets the word just
 * above the return slot of its call to the hook. */
static uint64_t *hooked_slot(uint64_t at)
{
	return (uint64_t *)(at + 8);
}

void pb_hook_enter(struct pb_site *site, uint64_t at, unsigned mode)
{
	uint64_t *slot = hooked_slot(at);
	struct pb_open_call *parent, *c;
	struct pb_thread *t;

	if (pb_latched || !(t = pb_thread_get(at)))
		return;
	switch_stack(t, at);
	pb_open_close(&t->top, at, PB_HOOKS(t));
	parent = innermost(t);
	if (is_outside(parent, mode))
		return;
	c = pb_open_enter(&t->top, (uint64_t)slot, PB_HOOKS(t));
	if (c)
		begin_call(t, c, site, slot, PB_OPEN_NO_RET, state_of(mode), 0);
	else if (!(mode & (PB_ENTER_SILENT | PB_ENTER_LAZY)))
		put_call(t, site, parent);
}

void pb_hook_exit(struct pb_site *site, uint64_t at)
{
	struct pb_open_call *c, *ended;
	uint64_t slot, now;
	struct pb_thread *t;

	if (pb_latched || !(t = pb_thread_get(at)))
		return;
	switch_stack(t, at);
	/* If a function jumps to its exit hook instead of calling it, `at` is higher than at the
	 * entry hook. So the call is found by its site, not by its slot. */
	for (c = pb_open_innermost(t->top); !pb_open_is_root(c); c = pb_open_below(c))
		if (pb_open_is_live(c) && c->ret == PB_OPEN_NO_RET && c->site == site->id)
			break;
	slot = pb_open_is_root(c) ? ~0ul : (uint64_t)c->word;
	if (slot > (uint64_t)hooked_slot(at))
		return;		/* the function was entered before it was traced */
	while ((ended = pb_open_exit(&t->top, slot, PB_OPEN_NO_RET, PB_HOOKS(t))) && ended != c) {
		pb_call_skipped(t, ended);
		pb_open_release(&t->top, ended);
	}
	if (!ended)
		return;
	now = pb_clock();
	pb_call_report(c, now);
	put_end(t, c, now, false);
	pb_open_release(&t->top, c);
}

const struct pb_stack *pb_calls_stack(struct pb_thread *t, uint64_t slot)
{
	switch_stack(t, slot);
	return t->stack;
}

/* `slot` is the return slot of the program's call of makecontext() or sigaltstack(), so it lies on
 * the calling thread's stack. The frame of this function isn't used to find that stack: it lies
 * below the slot, possibly in memory that still counts as part of a stack that is gone. */
void pb_stack_reported(uint64_t slot, uint64_t lo, uint64_t size, bool alternate)
{
	struct pb_stack *s = NULL;
	struct pb_thread *t;

	if (!lo || size < 256 || size > 1ul << 40 || slot - lo < size || pb_latched ||
	    !(t = pb_thread_get(slot)))
		return;
	switch_stack(t, slot);
	while ((s = pb_stack_overlapping(s, lo, lo + size))) {
		if (!pb_stack_is_idle(s))
			continue;
		pb_calls_close_stack(t, s, s->hi - 8);
		pb_stack_drop(s);
	}
	pb_stack_add(t, lo, lo + size, alternate);
}
