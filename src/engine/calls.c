/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/calls.h"
#include "base/base.h"
#include "engine/chains.h"
#include "engine/fgraph.h"
#include "engine/ftrace.h"
#include "engine/latch.h"

/* ---- records ----------------------------------------------------------------- */

static uint64_t site_word(uint64_t tag, uint32_t site)
{
	return tag | (uint64_t)site << PB_SITE_SHIFT;
}

static bool change_state(struct pb_open_call *c, uint8_t from, uint8_t to)
{
	return __atomic_compare_exchange_n(&c->state, &from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static bool unemitted(const struct pb_open_call *c)
{
	uint8_t state = c->state;

	return state == PB_ENTRY_LEAF || state == PB_ENTRY_LAZY || state == PB_ENTRY_LATE;
}

/* Once: a handler may do it meanwhile. False: there was no room; the call's next
 * callee, or its end, tries again. */
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

/* The ENTRY of c and of the calls around it that have none, outermost first. False: there
 * is no room for that; what stands below is left out, too, as it would show in another place. */
static bool emitted(struct pb_thread *t, struct pb_open_call *c)
{
	struct pb_open_call *first = c, *p;
	bool room = true;

	if (pb_likely(!unemitted(c)))
		return true;
	for (; p = pb_open_parent(first), is_open(p) && unemitted(p); first = p)
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

/* The record of a call that ended at `now`. */
static void put_end_of_call(struct pb_thread *t, struct pb_open_call *c, uint64_t now)
{
	uint64_t duration = now - c->start;

	/* its callees were lost: it is no leaf */
	if (pb_unlikely(c->state == PB_ENTRY_LATE) && !emitted(t, c)) {
		pb_writer_lost(&t->w);
		return;
	}
	switch (c->state) {
	case PB_ENTRY_EMITTED:
		pb_writer_put_end(&t->w, site_word(PB_TAG_EXIT, c->site), now, PB_TIME_BITS, NULL, 0, c);
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
	if (!emitted(t, pb_open_parent(c)))
		pb_writer_lost(&t->w);
	else if (duration >> PB_DUR_BITS)
		pb_writer_put_long(&t->w, c->site, c->start, now);
	else
		pb_writer_put(&t->w, site_word(PB_TAG_LEAF, c->site) | duration << PB_DUR_SHIFT, now,
			      PB_LEAF_BITS, NULL, 0);
}

/* A call that was left without a return. */
static void on_skipped(void *context, const struct pb_open_call *call)
{
	struct pb_thread *t = context;
	struct pb_open_call *c = (struct pb_open_call *)call;
	bool named = c->state != PB_ENTRY_LATE || emitted(t, c);
	uint64_t start = c->state == PB_ENTRY_LEAF ? c->start | !c->start : PB_END_ENTRY;
	uint64_t word = pb_ext_word(PB_EXT_END, PB_EXT_END_WORDS, c->site, 0), now = pb_clock();

	if (c->state == PB_ENTRY_EMITTED)
		pb_writer_put_end(&t->w, word, now, PB_EXT_TIME_BITS, &start, 1, c);
	else if (c->state == PB_ENTRY_LEAF && emitted(t, pb_open_parent(c)))
		pb_writer_put(&t->w, word, now, PB_EXT_TIME_BITS, &start, 1);
	else if (c->state == PB_ENTRY_LEAF || !named)
		pb_writer_lost(&t->w);
}

/* An exit that a jump abandoned. The reserved word that is left empty tells the record, if there was one. */
static void on_cut(void *context, const struct pb_open_call *c)
{
	struct pb_thread *t = context;

	if (c->record == PB_OPEN_UNRESERVED)
		on_skipped(context, c);
	else if (c->record == PB_OPEN_UNKNOWN && c->state == PB_ENTRY_EMITTED)
		t->w.missed++;
	else if (c->record == PB_OPEN_UNKNOWN && c->state <= PB_ENTRY_LATE)
		pb_writer_lost(&t->w);
}

void pb_calls_interrupted(uint64_t call, uint64_t slot, bool unreserved)
{
	struct pb_open_call *c = (struct pb_open_call *)call;
	uint64_t of;

	/* the assembly steps over its frame to call C code */
	if (pb_chain_holds(call) && !(call & 31) && pb_open_is_leaving(c, &of) && of - slot < 256)
		c->record = unreserved ? PB_OPEN_UNRESERVED : PB_OPEN_RESERVED;
}

#define HOOKS(t) \
	&(const struct pb_open_hooks){ (t), on_skipped, on_cut, pb_chain_take, pb_chain_give }

size_t pb_calls_open(struct pb_thread *t, uint64_t *out, size_t max, uint32_t *depth,
		     const struct pb_open_call *ending)
{
	struct pb_open_call *c = t->top ? pb_open_innermost(t->top) : NULL;
	uint64_t *end = out + max, *p = end;
	size_t nr;

	for (; c && !pb_open_is_root(c) && p - out >= 2; c = pb_open_below(c)) {
		if ((c != ending && c->record != PB_OPEN_UNRESERVED && !pb_open_is_live(c)) ||
		    c->state != PB_ENTRY_EMITTED)
			continue;
		if (p == end)
			*depth = pb_open_depth(c);
		*--p = c->start;
		*--p = pb_ext_word(PB_EXT_OPEN, 2, c->site, 0);
	}
	/* the walk came from inside: outermost first they stand at the end */
	nr = (size_t)(end - p);
	for (size_t i = 0; i < nr && p > out; i++)
		out[i] = p[i];
	for (p = out + nr > p ? out + nr : p; p < end; p++)
		*p = 0;
	return nr;
}

/* ---- stacks ------------------------------------------------------------------ */

void pb_calls_close_stack(struct pb_thread *t, struct pb_stack *s)
{
	struct pb_stack *back = t->stack;

	if (!pb_stack_visit(t, s))
		return;
	if (t->stack == s)
		pb_open_close(&t->top, s->hi - 8, HOOKS(t));
	pb_stack_leave(t, s, back);
}

/* The slot's stack becomes t's. What waits on the one before has an ENTRY, so that it
 * stands before what runs there. */
static void switch_stack(struct pb_thread *t, uint64_t slot)
{
	struct pb_stack *gone, *s;

	for (int tries = 0; tries < 4; tries++) {
		struct pb_open_call *c = pb_open_innermost(t->top);

		s = pb_thread_other_stack(t, slot, &gone);
		if (s && is_open(c) && c->state == PB_ENTRY_LEAF)
			emitted(t, c);
		if (!s || pb_thread_use_stack(t, s))
			break;
	}
	if (gone) {
		pb_calls_close_stack(t, gone);
		pb_stack_drop(gone);
	}
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

/* Its exit is under way. */
static void end_call(struct pb_thread *t, struct pb_open_call *c, uint64_t now)
{
	*(volatile uint8_t *)&c->record = PB_OPEN_UNRESERVED;
	pb_barrier();
	if (pb_latched)
		pb_writer_stay(&t->w);
	else
		put_end_of_call(t, c, now);
	pb_barrier();
	*(volatile uint8_t *)&c->record = PB_OPEN_RESERVED;
	pb_open_release(&t->top, c);
}

/* A call in the slot itself has ended by going on here. */
static void close_tail(struct pb_thread *t, uint64_t *slot)
{
	struct pb_open_call *c = pb_open_exit(&t->top, (uint64_t)slot, *slot, HOOKS(t));

	if (c)
		end_call(t, c, pb_clock());
}

void pb_calls_enter(struct pb_site *site, uint64_t *slot, unsigned mode)
{
	struct pb_open_call *parent, *c;
	struct pb_thread *t;

	if (pb_latched || !(t = pb_thread_get((uint64_t)slot)) || !t->top)
		return;
	switch_stack(t, (uint64_t)slot);
	close_tail(t, slot);
	pb_open_close(&t->top, (uint64_t)slot, HOOKS(t));
	parent = pb_open_innermost(t->top);
	if (!pb_open_is_root(parent) && !pb_open_is_live(parent))
		parent = pb_open_parent(parent);
	if (pb_open_depth(parent) >= pb_max_depth || parent->state == PB_ENTRY_SILENT ||
	    (mode & PB_ENTER_NESTED && pb_open_is_root(parent)))
		return;
	if (mode & PB_ENTER_CALL || !(c = pb_open_enter(&t->top, (uint64_t)slot, HOOKS(t)))) {
		if (!(mode & (PB_ENTER_SILENT | PB_ENTER_LAZY)))
			put_call(t, site, parent);
		return;
	}
	parent = pb_open_parent(c);
	if (!(mode & (PB_ENTER_SILENT | PB_ENTER_LAZY)))
		emitted(t, parent);
	c->site = site->id;
	c->record = PB_OPEN_UNKNOWN;
	c->state = mode & PB_ENTER_SILENT ? PB_ENTRY_SILENT :
		   mode & PB_ENTER_LAZY ? PB_ENTRY_LAZY : PB_ENTRY_LEAF;
	c->ret = *slot;
	c->start = pb_clock();
	if (c->state == PB_ENTRY_LEAF) {
		((uint32_t *)t->w.leaf)[2] = site->id;
		*t->w.leaf = c->start;
	}
	/* a later segment's foot answers for the call below it */
	if (c == pb_open_segment_of(c)->call + 1 && !unemitted(parent))
		c[-1].state = parent->state;
	pb_open_commit(c, (uint64_t)slot);
}

void pb_calls_exit(uint64_t *slot, struct pb_open_call *c, uint64_t now)
{
	struct pb_thread *t;

	/* no call of it is open */
	if (pb_thread_is_new() || !(t = pb_thread_get((uint64_t)slot)) || !t->top)
		return;
	if (!c) {
		now = pb_clock();
		switch_stack(t, (uint64_t)slot);
		c = pb_open_exit(&t->top, (uint64_t)slot, *slot, HOOKS(t));
	}
	if (!c)
		return;
	end_call(t, c, now);
}

const struct pb_stack *pb_calls_stack(struct pb_thread *t, uint64_t slot)
{
	if (t->top)
		switch_stack(t, slot);
	return t->stack;
}

void pb_calls_handler_over(struct pb_thread *t, uint64_t slot)
{
	if (t->top)
		pb_open_close(&t->top, slot, HOOKS(t));
}
