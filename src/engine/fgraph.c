/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/calls.h"
#include "engine/fgraph.h"
#include "engine/ftrace.h"
#include "engine/interrupt.h"
#include "engine/latch.h"
#include "engine/sweep.h"

uint32_t pb_max_depth;
uint8_t pb_no_clock;
uint64_t pb_frozen_clock;
uint64_t pb_thresh;
uint8_t pb_callers_only;

static bool no_tsc;		/* whatever --clock says */

uint64_t pb_clock(void)
{
	return pb_no_clock ? pb_frozen_clock : pb_rdtsc();
}

uint64_t pb_clock_ticks(void)
{
	return no_tsc ? 0 : pb_rdtsc();
}

void pb_clock_freeze(void)
{
	no_tsc = true;
	if (pb_no_clock)
		return;
	pb_frozen_clock = pb_rdtsc();
	pb_barrier();
	pb_no_clock = PB_CLOCK_FROZEN;
}

static uint64_t site_word(uint64_t tag, uint32_t site)
{
	return tag | (uint64_t)site << PB_SITE_SHIFT;
}

static bool change_state(struct pb_entry *e, uint8_t from, uint8_t to)
{
	return __atomic_compare_exchange_n(&PB_ENT_STATE(e), &from, to, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

static bool unemitted(const struct pb_entry *e)
{
	uint8_t state = PB_ENT_STATE(e);

	return state == PB_ENTRY_LEAF || state == PB_ENTRY_LAZY || state == PB_ENTRY_LATE;
}

/* Once: a handler may do it meanwhile. False: there was no room. The call's next
 * callee, or its end, tries again. */
static bool put_entry(struct pb_thread *t, struct pb_entry *e)
{
	uint8_t state = PB_ENT_STATE(e);

	if (!unemitted(e) || !change_state(e, state, PB_ENTRY_EMITTED) ||
	    pb_writer_put_entry(&t->w, site_word(PB_TAG_ENTRY, PB_ENT_SITE(e)), PB_ENT_START(e)))
		return true;
	change_state(e, PB_ENTRY_EMITTED, PB_ENTRY_LATE);
	return false;
}

static void be_late(struct pb_entry *e)
{
	if (!change_state(e, PB_ENTRY_LEAF, PB_ENTRY_LATE))
		change_state(e, PB_ENTRY_LAZY, PB_ENTRY_LATE);
}

/* The ENTRY of `e` and of the calls above it that have none, outermost first.
 * The way down is marked in the entries' scratch words. */
bool pb_emit(struct pb_thread *t, struct pb_entry *e, uint64_t slot)
{
	struct pb_entry *top = e;
	uint32_t n = 0;		/* guesses about stacks may have made a ring of them */
	bool room = true;

	t->w.slot = slot;
	PB_ENT_SCRATCH(e) = 0;
	for (struct pb_entry *p; unemitted(p = PB_ENT_PARENT(top)) && n++ < PB_NR_GATES; top = p)
		PB_ENT_SCRATCH(p) = (uint32_t)(((uint64_t)top - (uint64_t)pb_entries) / 16);
	for (n = 0; n <= PB_NR_GATES; n++) {
		if (room && unemitted(top))
			room = put_entry(t, top);
		else if (!room)
			be_late(top);
		if (top == e || !PB_ENT_SCRATCH(top))
			break;
		top = (struct pb_entry *)(pb_entries + (uint64_t)PB_ENT_SCRATCH(top) * 16);
	}
	return room;
}

/* A record below e is about to be written: e's ENTRY stands before it. False: there is
 * no room for that; the record is left out, too, as it would show in another place. */
static bool emitted(struct pb_thread *t, struct pb_entry *e)
{
	return pb_likely(!unemitted(e)) || pb_emit(t, e, t->w.slot);
}

/* t's stack has the one and not the other. If it has neither, t is changing stacks. */
static bool parted(const struct pb_thread *t, const struct pb_entry *e, const struct pb_entry *p)
{
	return pb_stack_holds(t->stack, PB_SLOT_ADDRESS(PB_ENT_SLOT(e))) &&
	       !pb_stack_holds(t->stack, PB_SLOT_ADDRESS(PB_ENT_SLOT(p)));
}

/* The call around e on t's stack. What was freed as dead may be somebody else's
 * now: outer calls lie above inner ones, so no chain has an end in itself. */
static struct pb_entry *outer(const struct pb_thread *t, const struct pb_entry *e)
{
	struct pb_entry *p = PB_ENT_PARENT(e);
	uint64_t word = PB_ENT_SLOT(p);

	if (pb_is_root(p))
		return p;
	if ((word > PB_ENT_SLOT(e) || (PB_SLOT_IS_HOOK(word) && word == PB_ENT_SLOT(e))) &&
	    !pb_is_watched(p) && !parted(t, e, p))
		return p;
	return t->stack->root;
}

/* The same, among those that a chunk's list may name. One that ends may be out
 * of the chain already: it stands just inside its parent. */
static struct pb_entry *around(const struct pb_thread *t, const struct pb_entry *e,
			       struct pb_entry *ending)
{
	struct pb_entry *parent = outer(t, e);

	return ending && e != ending && parent == PB_ENT_PARENT(ending) ? ending : parent;
}

static bool in_chain(const struct pb_thread *t, const struct pb_entry *entry)
{
	uint32_t n = 0;		/* guesses about stacks may have made a ring of them */

	for (const struct pb_entry *e = t->cur; !pb_is_root(e) && n++ < PB_NR_GATES; e = outer(t, e))
		if (e == entry)
			return true;
	return false;
}

/* A walk over the open calls, innermost first, with an end whatever the chain is. */
struct walk {
	const struct pb_thread *t;
	struct pb_entry *e, *end, *outside;
	uint32_t n;
};

/* The next one whose ENTRY was written; a root: there is none. */
static struct pb_entry *next_listed(struct walk *w)
{
	struct pb_entry *e = w->e;

	while (!pb_is_root(e) && e != w->end && PB_ENT_STATE(e) != PB_ENTRY_EMITTED) {
		if (w->n++ == PB_NR_GATES)
			return w->t->stack->root;
		e = around(w->t, e, w->outside);
	}
	w->e = pb_is_root(e) ? e : around(w->t, e, w->outside);
	return e;
}

size_t pb_fgraph_open_calls(struct pb_writer *w, uint64_t *out, size_t max, uint32_t *depth,
			    const void *ending)
{
	struct pb_thread *t = pb_container_of(w, struct pb_thread, w);
	struct walk at = { .t = t, .end = (struct pb_entry *)ending };
	uint64_t *end = out + max, *p = end;
	struct pb_entry *e;
	size_t nr;

	if (pb_return_sites)
		return pb_calls_open(t, out, max, depth, ending);
	if (!t->cur)
		return 0;
	if (at.end && !in_chain(t, at.end))
		at.outside = at.end;
	at.e = at.outside && t->cur == PB_ENT_PARENT(at.outside) ? at.outside : t->cur;
	e = next_listed(&at);
	*depth = pb_depth(e);
	for (; !pb_is_root(e) && p - out >= 2; e = next_listed(&at)) {
		*--p = PB_ENT_START(e);
		*--p = pb_ext_word(PB_EXT_OPEN, 2, PB_ENT_SITE(e), 0);
	}
	/* the walk came from inside: outermost first they stand at the end */
	nr = (size_t)(end - p);
	for (size_t i = 0; i < nr && p > out; i++)
		out[i] = p[i];
	for (p = out + nr > p ? out + nr : p; p < end; p++)
		*p = 0;
	return nr;
}

/* The record of a call that ended at `now`. */
static void put_end_of_call(struct pb_thread *t, struct pb_entry *e, uint64_t now)
{
	uint64_t start = PB_ENT_START(e), duration = now - start;
	uint32_t site = PB_ENT_SITE(e);

	/* its callees were lost: it is no leaf */
	if (pb_unlikely(PB_ENT_STATE(e) == PB_ENTRY_LATE) && !emitted(t, e)) {
		pb_writer_lost(&t->w);
		return;
	}
	switch (PB_ENT_STATE(e)) {
	case PB_ENTRY_EMITTED:
		pb_writer_put_end(&t->w, site_word(PB_TAG_EXIT, site), now, PB_TIME_BITS, NULL, 0, e);
		return;
	case PB_ENTRY_LAZY:
		if (duration < pb_thresh || (int64_t)duration < 0 ||
		    (pb_callers_only && !pb_site_is_caller(site)))
			return;
		break;
	case PB_ENTRY_LEAF:
		break;
	default:
		return;
	}
	if (!emitted(t, PB_ENT_PARENT(e)))
		pb_writer_lost(&t->w);
	else if (duration >> PB_DUR_BITS)
		pb_writer_put_long(&t->w, site, start, now);
	else
		pb_writer_put(&t->w, site_word(PB_TAG_LEAF, site) | duration << PB_DUR_SHIFT, now,
			      PB_LEAF_BITS, NULL, 0);
}

/* A call that was left without a return. Its gate may still be returned
 * through (a coroutine's stack that we took for another's); then nothing more
 * is written. */
static void close_skipped(struct pb_thread *t, struct pb_entry *e, uint64_t now)
{
	/* once, whoever finds it: two threads may, where one left it on a stack that
	 * the other came to */
	bool named = PB_ENT_STATE(e) != PB_ENTRY_LATE || emitted(t, e);
	uint8_t state = __atomic_exchange_n(&PB_ENT_STATE(e), PB_ENTRY_CLOSED, __ATOMIC_RELAXED);
	uint64_t start = state == PB_ENTRY_LEAF ? PB_ENT_START(e) | !PB_ENT_START(e) : PB_END_ENTRY;
	uint64_t word = pb_ext_word(PB_EXT_END, PB_EXT_END_WORDS, PB_ENT_SITE(e), 0);

	if (state == PB_ENTRY_EMITTED)
		pb_writer_put_end(&t->w, word, now, PB_EXT_TIME_BITS, &start, 1, e);
	else if (state == PB_ENTRY_LEAF && emitted(t, PB_ENT_PARENT(e)))
		pb_writer_put(&t->w, word, now, PB_EXT_TIME_BITS, &start, 1);
	else if (state == PB_ENTRY_LEAF || !named)
		pb_writer_lost(&t->w);
}

void pb_fgraph_close(struct pb_thread *t, struct pb_entry *e, uint64_t now)
{
	struct pb_entry *p = outer(t, e);

	close_skipped(t, e, now);
	if (t->cur == e)
		t->cur = p;
}

static void pop_skipped(struct pb_thread *t, const struct pb_hit *h, uint64_t slot, uint64_t now)
{
	struct pb_entry *e;

	while (e = t->cur, !pb_is_root(e) && PB_ENT_SLOT(e) <= slot) {
		pb_fgraph_close(t, e, now);
		pb_free_if_dead(t, h, e);
	}
}

static void fill_entry(struct pb_thread *t, struct pb_entry *e, struct pb_site *site,
		       unsigned mode)
{
	PB_ENT_BODY(e) = site->body;
	PB_ENT_SITE(e) = site->id;
	PB_ENT_STATE(e) = mode & PB_ENTER_SILENT ? PB_ENTRY_SILENT :
			  mode & PB_ENTER_LAZY ? PB_ENTRY_LAZY : PB_ENTRY_LEAF;
	PB_ENT_START(e) = pb_clock();
	if (PB_ENT_DEPTH(e) == PB_DEPTH_NEXT)
		PB_ENT_DEPTH(e) = PB_DEPTH_PARENT;
	if (PB_ENT_STATE(e) == PB_ENTRY_LEAF) {
		((uint32_t *)t->w.leaf)[2] = site->id;
		*t->w.leaf = PB_ENT_START(e);
	}
}

/* The function that entry e stands for ended by a jump to this one. */
static struct pb_target reuse(struct pb_thread *t, struct pb_entry *e, struct pb_site *site,
			      unsigned mode)
{
	bool silent = PB_ENT_STATE(e) == PB_ENTRY_SILENT, current = t->cur == e;

	/* as at an exit: a handler's calls in between are in neither of the two */
	if (current)
		t->cur = PB_ENT_PARENT(e);
	pb_barrier();
	put_end_of_call(t, e, pb_clock());
	if (silent || pb_depth(PB_ENT_PARENT(e)) >= pb_max_depth) {
		/* not recorded; it returns through e all the same */
		PB_ENT_BODY(e) = site->body;
		if (!silent)
			PB_ENT_STATE(e) = PB_ENTRY_CLOSED;
	} else {
		fill_entry(t, e, site, mode);
		if (mode & PB_ENTER_SILENT)
			PB_ENT_DEPTH(e) = PB_DEPTH_SILENT;
	}
	pb_barrier();
	if (current)
		t->cur = e;
	return (struct pb_target){ pb_gate_of(e), 1 };
}

/* The hit's stack becomes t's. What waits for another stack has an ENTRY, so
 * that it stands before what runs there. */
static void switch_stack(struct pb_thread *t, struct pb_hit *h)
{
	struct pb_stack *gone, *s;

	for (int tries = 0; tries < 4; tries++) {
		s = pb_thread_other_stack(t, h->slot, &gone);
		if (s && PB_ENT_STATE(t->cur) == PB_ENTRY_LEAF)
			pb_emit(t, t->cur, h->slot);
		if (!s || pb_thread_use_stack(t, s))
			break;
	}
	h->stack = t->stack;
	if (gone) {
		pb_close_stack(t, h, gone);
		pb_stack_drop(gone);
	}
	if (pb_unlikely(t->want))
		pb_sweep_wanted(t, h);
}

const struct pb_stack *pb_fgraph_stack(struct pb_thread *t, uint64_t slot)
{
	struct pb_hit h = { slot, PB_SITE_PROGRAM, NULL };

	if (!t->cur)
		return NULL;
	if (pb_return_sites)
		return pb_calls_stack(t, slot);
	switch_stack(t, &h);
	return h.stack;
}

void pb_stack_told(uint64_t lo, uint64_t size)
{
	struct pb_hit h = { (uint64_t)__builtin_frame_address(0), PB_SITE_PROGRAM, NULL };
	struct pb_stack *s = NULL;
	struct pb_thread *t;

	if (!lo || size < 256 || size > 1ul << 40 || h.slot - lo < size || pb_latched ||
	    !(t = pb_thread_get(h.slot)))
		return;
	h.stack = pb_fgraph_stack(t, h.slot);
	while ((s = pb_stack_overlapping(s, lo, lo + size))) {
		if (!pb_stack_is_idle(s))
			continue;
		if (pb_return_sites)
			pb_calls_close_stack(t, s);
		else
			pb_close_stack(t, &h, s);
		pb_stack_drop(s);
	}
	pb_stack_add(t, lo, lo + size);
}

static void put_call(struct pb_thread *t, struct pb_site *site)
{
	if (!emitted(t, t->cur))
		pb_writer_lost(&t->w);
	else if (pb_writer_put(&t->w, pb_ext_word(PB_EXT_CALL, 1, site->id, 0), pb_clock(),
			       PB_EXT_TIME_BITS, NULL, 0))
		pb_writer_no_return(&t->w);
}

static struct pb_target graph_enter(struct pb_thread *t, struct pb_site *site, uint64_t *slot,
				    unsigned mode)
{
	struct pb_hit h = { (uint64_t)slot, site->id, NULL };
	struct pb_target on = { site->body, 0 };
	uint64_t at = h.slot;
	struct pb_entry *e, *cur;

	switch_stack(t, &h);
	cur = t->cur;
	if (pb_is_gate(*slot) && !pb_is_watched(pb_entry_of(*slot))) {
		/* a tail call: the gate's entry is the current one, but for what
		 * guesses about stacks got wrong */
		e = pb_entry_of(*slot);
		if (PB_SLOT_ADDRESS(PB_ENT_SLOT(e)) != at)
			return on;
		if (e != cur)
			pop_skipped(t, &h, at - 8, pb_clock());
		if (mode & PB_ENTER_CALL) {
			/* it may look at its return address: give it the real one */
			if (t->cur == e)
				t->cur = PB_ENT_PARENT(e);
			pb_barrier();
			put_end_of_call(t, e, pb_clock());
			*slot = PB_ENT_RET(e);
			/* unless its owner, another thread, found it dead by now */
			pb_gate_free(e, at - 1);
			pb_gates_forget_progs(slot);
			put_call(t, site);
			return on;
		}
		return reuse(t, e, site, mode);
	}
	if (PB_ENT_SLOT(cur) <= at && !pb_is_root(cur)) {
		pop_skipped(t, &h, at, pb_clock());
		cur = t->cur;
	}
	if (pb_depth(cur) >= pb_max_depth || (mode & PB_ENTER_NESTED && pb_is_root(cur)))
		return on;
	if (mode & PB_ENTER_CALL || !(e = pb_claim(t, &h))) {
		if (!(mode & (PB_ENTER_SILENT | PB_ENTER_LAZY)))
			put_call(t, site);
		return on;
	}
	PB_ENT_PARENT(e) = cur;
	PB_ENT_DEPTH(e) = mode & PB_ENTER_SILENT ? PB_DEPTH_SILENT : pb_depth(cur) + 1;
	PB_ENT_RET(e) = *slot;
	if (!(mode & (PB_ENTER_SILENT | PB_ENTER_LAZY)))
		emitted(t, cur);
	fill_entry(t, e, site, mode);
	pb_barrier();
	t->cur = e;
	t->hint = (struct pb_entry *)((char *)e + 16);
	*slot = pb_gate_of(e) + PB_GATE_RETURN;
	pb_barrier();
	PB_ENT_SLOT(e) = at - 1;
	return (struct pb_target){ pb_gate_of(e), 1 };
}

void pb_record_function(struct pb_site *site, uint64_t parent_ip)
{
	struct pb_thread *t = pb_tls;

	if (!pb_max_depth || !t->cur)
		return;
	for (int i = 0; i < PB_MAX_WATCHED + 1 && pb_is_gate(parent_ip); i++)
		parent_ip = PB_ENT_RET(pb_entry_of(parent_ip));
	parent_ip = pb_ext_address(parent_ip);
	pb_writer_put(&t->w, pb_ext_word(PB_EXT_FUNC, 2, site->id, 0), pb_clock(),
		      PB_EXT_TIME_BITS, &parent_ip, 1);
}

struct pb_target pb_enter(struct pb_site *site, uint64_t *slot, unsigned mode)
{
	struct pb_target on = { site->body, 0 };
	struct pb_thread *t;

	if (pb_latched || !(t = pb_thread_get((uint64_t)slot)))
		return on;
	if (mode == PB_ENTER_FUNCTION) {
		pb_record_function(site, *slot);
		return on;
	}
	if (mode == PB_ENTER_LIST) {
		mode = pb_ftrace_list(site, *slot);
		if (mode == PB_ENTER_LIST)
			return on;
	}
	if (pb_return_sites) {
		pb_calls_enter(site, slot, mode);
		return on;
	}
	return graph_enter(t, site, slot, mode);
}

bool pb_fgraph_pop_to(struct pb_thread *t, const struct pb_hit *h, struct pb_entry *e, uint64_t now)
{
	struct pb_entry *c = t->cur;
	uint32_t n = 0;

	while (c != e && !pb_is_root(c) && PB_ENT_SLOT(c) <= PB_ENT_SLOT(e) && n++ < PB_NR_GATES)
		c = outer(t, c);
	if (c != e)
		return false;
	while (c = t->cur, c != e && !pb_is_root(c)) {
		pb_fgraph_close(t, c, now);
		pb_free_if_dead(t, h, c);
	}
	return c == e;
}

/* Frees nothing: the assembly does, when it has the return address. */
uint64_t pb_exit(struct pb_entry *e, uint64_t now, unsigned how, uint64_t *slot)
{
	struct pb_thread *t = pb_thread_get((uint64_t)slot);
	struct pb_hit h = { (uint64_t)slot, PB_ENT_SITE(e), NULL };

	if (pb_is_watched(e)) {
		pb_interrupt_returned(e, slot);
		return PB_ENT_RET(e);
	}
	if (t && pb_latched) {
		pb_writer_stay(&t->w);
	} else if (t) {
		if (how == PB_EXIT_WHOLE) {
			switch_stack(t, &h);
			if (pb_fgraph_pop_to(t, &h, e, now))
				t->cur = outer(t, e);
		}
		put_end_of_call(t, e, now);
		if (PB_ENT_OWNER(e) == t)
			t->hint = e;
	}
	return PB_ENT_RET(e);
}
