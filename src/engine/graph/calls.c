/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The slow path of the function graph. The assembly of entries and exits calls it, and so do the
 * compiler's hooks. It opens and closes calls, writes their records, and handles the cases that
 * the assembly leaves to C: changes of the stack, calls that are skipped by a longjmp or an
 * exception, limits of depth and time, and records that need the parent's ENTRY.
 *
 * The idea is that a call is identified by its return slot and return address. All calls with slots
 * below the slot of a hit are over, because the stack pointer is above their slots.
 *
 * A signal handler may interrupt each function of this file at any instruction. The handler may
 * make calls of its own on the same stack, and then return or leave by a jump. So each change of a
 * call becomes visible by one instruction. This is a store or a compare-and-swap on the call's word
 * or on its state.
 */
#include "engine/graph/calls.h"
#include "arch/arch.h"
#include "base/base.h"
#include "engine/graph/chains.h"
#include "engine/clock.h"
#include "engine/text/ftrace.h"
#include "engine/latch.h"
#include "engine/graph/period.h"

#define MOST_TRIES	4	/* number of times that a thread tries again to move to a stack, if
				 * other threads move to it at the same time */

uint32_t pb_max_depth;
uint64_t pb_thresh;
uint8_t pb_callers_only;

static uint64_t missed;
uint64_t *pb_prog_missed = &missed;

bool pb_calls_watching;

/* ---- records ----------------------------------------------------------------- */

static uint64_t site_word(uint64_t tag, uint32_t site)
{
	return tag | (uint64_t)site << PB_SITE_SHIFT;
}

static bool change_state(struct pb_open_call *c, uint8_t from, uint8_t to)
{
	return __atomic_compare_exchange_n(&c->state, &from, to, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

static bool unemitted(const struct pb_open_call *c)
{
	uint8_t state = c->state;

	return state == PB_ENTRY_LEAF || state == PB_ENTRY_LAZY || state == PB_ENTRY_LATE;
}

/* Writes the ENTRY of c. If a handler tries to write this ENTRY meanwhile, only one ENTRY is
 * written. False: there was no room. The call's next callee, or the call's end, will try again. */
static bool put_entry(struct pb_thread *t, struct pb_open_call *c)
{
	uint8_t state = c->state;

	if (!unemitted(c) || !change_state(c, state, PB_ENTRY_EMITTED) ||
	    pb_writer_put_entry(&t->w, site_word(PB_TAG_ENTRY, c->site), c->start))
		return true;
	change_state(c, PB_ENTRY_EMITTED, PB_ENTRY_LATE);
	return false;
}

static void be_late(struct pb_open_call *c)
{
	if (!change_state(c, PB_ENTRY_LEAF, PB_ENTRY_LATE))
		change_state(c, PB_ENTRY_LAZY, PB_ENTRY_LATE);
}

static bool is_open(const struct pb_open_call *c)
{
	return !pb_open_is_root(c) && pb_open_is_live(c);
}

/* Returns the call around `call` in the tree. A call that is open only for eBPF programs isn't in
 * the tree. */
static struct pb_open_call *outer(const struct pb_open_call *call)
{
	struct pb_open_call *c = pb_open_parent(call);

	while (c->state == PB_ENTRY_PROG && !pb_open_is_root(c))
		c = pb_open_parent(c);
	return c;
}

/* Writes the ENTRY of c and of the calls around it that have none, outermost first. False: there is
 * no room. In this case the caller must not write records of c's callees, because readers would
 * show these records in the wrong place. */
static bool emitted(struct pb_thread *t, struct pb_open_call *c)
{
	struct pb_open_call *first = c, *p;
	bool room = true;

	if (pb_likely(!unemitted(c)))
		return true;
	for (; p = outer(first), is_open(p) && unemitted(p); first = p)
		;
	for (p = first; p; p = pb_open_above(p)) {
		if (p == c || pb_open_is_live(p)) {
			if (room)
				room = put_entry(t, p);
			else
				be_late(p);
		}
		if (p == c)
			break;
	}
	return room;
}

/* Writes the record of a call that ended at `now` by a jump to another function. */
static void put_tail(struct pb_thread *t, struct pb_open_call *c, uint64_t now)
{
	uint64_t duration = now - c->start, word = pb_ext_address(duration);

	if (unemitted(c) && !(duration >> PB_EXT_ADDRESS_BITS))
		pb_writer_put(&t->w,
			      pb_ext_word(PB_EXT_TAIL_LEAF, PB_EXT_TAIL_LEAF_WORDS, c->site, 0),
			      now, PB_EXT_TIME_BITS, &word, 1);
	else if (put_entry(t, c))
		pb_writer_put_end(&t->w, pb_ext_word(PB_EXT_TAIL, PB_EXT_TAIL_WORDS, c->site, 0),
				  now, PB_EXT_TIME_BITS, NULL, 0, c);
	else
		pb_writer_lost(&t->w);
}

/* Writes the record of a call that ended at `now`, by a return or a jump. */
static void put_end_of_call(struct pb_thread *t, struct pb_open_call *c, uint64_t now, bool jump)
{
	uint64_t duration = now - c->start;

	/* callees of this call were lost: it isn't a leaf */
	if (pb_unlikely(c->state == PB_ENTRY_LATE) && !emitted(t, c)) {
		pb_writer_lost(&t->w);
		return;
	}
	switch (c->state) {
	case PB_ENTRY_EMITTED:
		if (jump)
			put_tail(t, c, now);
		else
			pb_writer_put_end(&t->w, site_word(PB_TAG_EXIT, c->site), now, PB_TIME_BITS,
					  NULL, 0, c);
		return;
	case PB_ENTRY_LAZY:
		if (duration < pb_thresh || (int64_t)duration < 0 ||
		    (pb_callers_only && !pb_site_is_caller(c->site)))
			return;
		break;
	case PB_ENTRY_LEAF:
		break;
	default:
		return;
	}
	if (!emitted(t, outer(c)))
		pb_writer_lost(&t->w);
	else if (jump)
		put_tail(t, c, now);
	else if (duration >> PB_DUR_BITS)
		pb_writer_put_long(&t->w, c->site, c->start, now);
	else
		pb_writer_put(&t->w, site_word(PB_TAG_LEAF, c->site) | duration << PB_DUR_SHIFT,
			      now, PB_LEAF_BITS, NULL, 0);
}

/* Handles a call that ended without a return, for example by a longjmp. */
static void on_skipped(void *context, const struct pb_open_call *call)
{
	struct pb_thread *t = context;
	struct pb_open_call *c = (struct pb_open_call *)call;
	bool named = c->state != PB_ENTRY_LATE || emitted(t, c);
	uint64_t start = c->state == PB_ENTRY_LEAF ? c->start | !c->start : PB_END_ENTRY;
	uint64_t word = pb_ext_word(PB_EXT_END, PB_EXT_END_WORDS, c->site, 0), now = pb_clock();

	if (c->watch && c->watch != PB_WATCH_BELOW)
		__atomic_add_fetch(pb_prog_missed, 1, __ATOMIC_RELAXED);
	if (c->state == PB_ENTRY_EMITTED)
		pb_writer_put_end(&t->w, word, now, PB_EXT_TIME_BITS, &start, 1, c);
	else if (c->state == PB_ENTRY_LEAF && emitted(t, outer(c)))
		pb_writer_put(&t->w, word, now, PB_EXT_TIME_BITS, &start, 1);
	else if (c->state == PB_ENTRY_LEAF || !named)
		pb_writer_lost(&t->w);
}

/* Handles a call whose exit stub was interrupted by a signal handler that then left by a jump. If
 * the exit has reserved a word for the call's record but not written it, the word stays empty. */
static void on_cut(void *context, const struct pb_open_call *c)
{
	struct pb_thread *t = context;

	if (c->record == PB_OPEN_UNRESERVED || c->record == PB_OPEN_RESERVED)
		on_skipped(context, c);
	else if (c->record == PB_OPEN_UNKNOWN && c->state == PB_ENTRY_EMITTED)
		pb_writer_missed(&t->w);
	else if (c->record == PB_OPEN_UNKNOWN && c->state <= PB_ENTRY_LATE)
		pb_writer_lost(&t->w);
}

void pb_calls_interrupted(uint64_t call, uint64_t slot, uint8_t record)
{
	struct pb_open_call *c = (struct pb_open_call *)call;
	uint64_t of;

	/* `slot` may be below the call's slot, because the assembly lowers the stack pointer to
	 * call C code */
	if (pb_chain_holds(call) && !(call & 31) && pb_open_is_leaving(c, &of) && of - slot < 256)
		c->record = record;
}

#define HOOKS(t) \
	&(const struct pb_open_hooks){ (t), on_skipped, on_cut, pb_chain_take, pb_chain_give }

/* ---- stacks ------------------------------------------------------------------ */

void pb_calls_close_stack(struct pb_thread *t, struct pb_stack *s, uint64_t slot)
{
	struct pb_stack *back = t->stack;

	if (!pb_stack_visit(t, s))
		return;
	if (t->stack == s)
		pb_open_close(&t->top, slot, HOOKS(t));
	pb_stack_leave(t, s, back);
}

/* Closes the stack's calls of former periods (period.h), which may have ended unseen. If
 * interrupted code is in the middle of changing one of these calls, the stack keeps its old period.
 * Each further hit calls this function again until that code has finished. */
static void begin_period(struct pb_thread *t, uint64_t slot)
{
	uint32_t period = __atomic_load_n(&pb_period, __ATOMIC_RELAXED);

	if (pb_likely(t->stack->period == period) || !pb_open_forget(&t->top, slot, HOOKS(t)))
		return;
	pb_chain_set_period(t->stack, period);
	pb_period_set_lo(t);
}

/* Moves t to the slot's stack. First writes the ENTRY of the old stack's innermost call, so that
 * this ENTRY comes before the records of the new stack. */
static void switch_stack(struct pb_thread *t, uint64_t slot)
{
	struct pb_stack *gone, *s;

	for (int tries = 0; ; tries++) {
		struct pb_open_call *c = pb_open_innermost(t->top);

		s = pb_thread_other_stack(t, slot, &gone);
		if (s && is_open(c) && c->state == PB_ENTRY_LEAF)
			emitted(t, c);
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
	begin_period(t, slot);
	if (s)
		pb_stacks_look(t);
}

/* ---- entries and exits ------------------------------------------------------- */

static void put_call(struct pb_thread *t, struct pb_site *site, struct pb_open_call *parent)
{
	if (!emitted(t, parent))
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
		put_end_of_call(t, c, now, jump);
	pb_barrier();
	*(volatile uint8_t *)&c->record = PB_OPEN_WRITTEN;
	/* calls that eBPF programs make until c is released aren't callees of c */
	*(volatile uint8_t *)&c->state = PB_ENTRY_PROG;
}

/* Called after the record of c is written. If the return of c has eBPF programs, returns c.
 * Otherwise ends c and goes on with the next call that returns through the same slot. */
static struct pb_open_call *watched(struct pb_thread *t, struct pb_open_call *c, uint64_t *slot)
{
	while (c && c->watch == PB_WATCH_BELOW) {
		pb_open_release(&t->top, c);
		c = pb_open_exit(&t->top, (uint64_t)slot, *slot, HOOKS(t));
	}
	return c;
}

/* Handles a call c whose function went on in another function. The other function returns in place
 * of c's function. known: the return of the other function is hooked. */
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

/* Called when a call begins in the slot of an open call. If the open call's function can go on in
 * another function without an exit, the open call ends here, by a tail call. If not, the open call
 * was skipped by a jump or an exception, and the new call has reused the slot. */
static void close_tail(struct pb_thread *t, uint64_t *slot)
{
	struct pb_open_call *c = pb_open_at(&t->top, (uint64_t)slot, *slot, HOOKS(t));

	if (!c || c->state == PB_ENTRY_PROG || !pb_site_goes_on(c->site) ||
	    !(c = pb_open_exit(&t->top, (uint64_t)slot, *slot, HOOKS(t))))
		return;
	put_end(t, c, pb_clock(), true);
	/* c's eBPF programs see no return, because c may also have been skipped by a jump */
	go_on(t, c, slot, false);
}

/* Ends those calls of the site that still wait for the return through the slot. The function of
 * such a call went on in another function, and the call waits for that function's return. If the
 * site makes a new call in the slot, a jump has skipped that function: its return never comes. */
static void forget_waiting(struct pb_thread *t, uint64_t *slot, uint32_t site)
{
	struct pb_open_call *c;

	while ((c = pb_open_at(&t->top, (uint64_t)slot, *slot, HOOKS(t))) && c->site == site &&
	       (c = pb_open_exit(&t->top, (uint64_t)slot, *slot, HOOKS(t))))
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

/* Returns the innermost call of the tree. */
static struct pb_open_call *innermost(const struct pb_thread *t)
{
	struct pb_open_call *c = pb_open_innermost(t->top);

	return pb_open_is_root(c) || (pb_open_is_live(c) && c->state != PB_ENTRY_PROG) ? c :
	       outer(c);
}

/* Returns whether a call that the parent makes is left out of the tree. */
static bool is_outside(const struct pb_open_call *parent, unsigned mode)
{
	return mode == PB_ENTER_LIST || pb_open_depth(parent) >= pb_max_depth ||
	       parent->state == PB_ENTRY_SILENT ||
	       (mode & PB_ENTER_NESTED && pb_open_is_root(parent));
}

/* Ends the calls that are over because a call begins in the slot. Returns the parent for the new
 * call. */
static struct pb_open_call *parent_at(struct pb_thread *t, uint64_t *slot)
{
	switch_stack(t, (uint64_t)slot);
	close_tail(t, slot);
	pb_open_close(&t->top, (uint64_t)slot, HOOKS(t));
	return innermost(t);
}

static uint8_t state_of(unsigned mode)
{
	if (mode & PB_ENTER_SILENT)
		return PB_ENTRY_SILENT;
	return mode & PB_ENTER_LAZY ? PB_ENTRY_LAZY : PB_ENTRY_LEAF;
}

/* Fills the entry of a call that is about to begin. False: the call's return has no eBPF
 * programs. */
static bool begin_call(struct pb_thread *t, struct pb_open_call *c, const struct pb_site *site,
		       const uint64_t *slot, uint64_t ret, uint8_t state, uint16_t watch)
{
	struct pb_open_call *parent = outer(c);
	unsigned waiting = pb_calls_watching ? nr_waiting(c, (uint64_t)slot) : 0;
	/* after this call, t may have to go back to another stack */
	bool last = pb_unlikely(t->stack->back) && pb_open_is_root(pb_open_below(c));

	if (waiting >= PB_MAX_WATCHED)
		watch = 0;
	if (state == PB_ENTRY_LEAF)
		emitted(t, parent);
	c->site = site->id;
	c->record = PB_OPEN_UNKNOWN;
	c->state = state;
	c->watch = !watch && (waiting || last) ? PB_WATCH_BELOW : watch;
	c->ret = ret;
	c->start = pb_clock();
	if (state == PB_ENTRY_LEAF)
		pb_writer_leaf(&t->w, site->id, c->start);
	/* if c is the first call of a later segment, the entry before c is the segment's foot. The
	 * foot stands for the last call of the segment before, so it gets that call's state */
	if (c == pb_open_segment_of(c)->call + 1 && parent == pb_open_parent(c) &&
	    !unemitted(parent))
		c[-1].state = parent->state;
	pb_open_commit(c, (uint64_t)slot);
	return watch;
}

void pb_calls_enter(struct pb_site *site, uint64_t *slot, unsigned mode)
{
	struct pb_open_call *parent, *c;
	struct pb_thread *t;

	if (pb_latched || !(t = pb_thread_get((uint64_t)slot)))
		return;
	parent = parent_at(t, slot);
	if (is_outside(parent, mode))
		return;
	if (mode & PB_ENTER_CALL || !(c = pb_open_enter(&t->top, (uint64_t)slot, HOOKS(t)))) {
		if (!(mode & (PB_ENTER_SILENT | PB_ENTER_LAZY)))
			put_call(t, site, parent);
		return;
	}
	begin_call(t, c, site, slot, *slot, state_of(mode), 0);
}

bool pb_calls_watch(struct pb_site *site, uint64_t *slot, unsigned mode, uint16_t watch)
{
	struct pb_open_call *parent, *c;
	struct pb_thread *t = pb_thread_get((uint64_t)slot);
	bool call, outside;

	if (!t)
		return false;
	pb_calls_watching = true;
	parent = parent_at(t, slot);
	outside = is_outside(parent, mode);
	call = !outside && !(mode & (PB_ENTER_SILENT | PB_ENTER_LAZY));
	forget_waiting(t, slot, site->id);
	if (call && mode & PB_ENTER_CALL)
		put_call(t, site, parent);
	outside |= !!(mode & PB_ENTER_CALL);
	c = pb_open_enter(&t->top, (uint64_t)slot, HOOKS(t));
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
		c = pb_open_exit(&t->top, (uint64_t)slot, *slot, HOOKS(t));
		now = pb_clock();	/* the clock is read after pb_open_exit(), because c must
					 * not end before the skipped calls */
	}
	if (!c)
		return NULL;
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
	struct pb_thread *t = pb_thread_get((uint64_t)slot);

	if (!t)
		return NULL;
	pb_open_release(&t->top, c);
	c = watched(t, pb_open_exit(&t->top, (uint64_t)slot, *slot, HOOKS(t)), slot);
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
	pb_open_close(&t->top, at, HOOKS(t));
	parent = innermost(t);
	if (is_outside(parent, mode))
		return;
	c = pb_open_enter(&t->top, (uint64_t)slot, HOOKS(t));
	if (c)
		begin_call(t, c, site, slot, PB_OPEN_NO_RET, state_of(mode), 0);
	else if (!(mode & (PB_ENTER_SILENT | PB_ENTER_LAZY)))
		put_call(t, site, parent);
}

void pb_hook_exit(struct pb_site *site, uint64_t at)
{
	struct pb_open_call *c, *ended;
	uint64_t slot;
	struct pb_thread *t;

	if (pb_latched || !(t = pb_thread_get(at)))
		return;
	switch_stack(t, at);
	/* if a function jumps to its last exit hook, `at` is at a higher address */
	for (c = pb_open_innermost(t->top); !pb_open_is_root(c); c = pb_open_below(c))
		if (pb_open_is_live(c) && c->ret == PB_OPEN_NO_RET && c->site == site->id)
			break;
	slot = pb_open_is_root(c) ? ~0ul : (uint64_t)c->word;
	if (slot > (uint64_t)hooked_slot(at))
		return;		/* the function was entered before it was traced */
	while ((ended = pb_open_exit(&t->top, slot, PB_OPEN_NO_RET, HOOKS(t))) && ended != c) {
		on_skipped(t, ended);
		pb_open_release(&t->top, ended);
	}
	if (!ended)
		return;
	put_end(t, c, pb_clock(), false);
	pb_open_release(&t->top, c);
}

const struct pb_stack *pb_calls_stack(struct pb_thread *t, uint64_t slot)
{
	switch_stack(t, slot);
	return t->stack;
}

/* The slot shows on which stack the caller is. The address of a frame of the agent wouldn't show
 * this, because the frame may overlap the memory of a stack that is gone. */
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

void pb_calls_handler_over(struct pb_thread *t, uint64_t slot)
{
	pb_open_close(&t->top, slot, HOOKS(t));
}
