/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/fgraph.h"
#include "engine/ftrace.h"
#include "engine/latch.h"

uint32_t pb_max_depth;
uint8_t pb_no_clock;
uint64_t pb_frozen_clock;
uint64_t pb_thresh;
uint8_t pb_callers_only;

uint64_t pb_clock(void)
{
	return pb_no_clock ? pb_frozen_clock : pb_rdtsc();
}

void pb_clock_freeze(void)
{
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

static void put_entry(struct pb_thread *t, struct pb_entry *e)
{
	PB_ENT_STATE(e) = PB_ENTRY_EMITTED;
	pb_writer_put(&t->w, site_word(PB_TAG_ENTRY, PB_ENT_SITE(e)), PB_ENT_START(e),
		      PB_TIME_BITS, NULL, 0);
}

static bool unemitted(const struct pb_entry *e)
{
	return PB_ENT_STATE(e) == PB_ENTRY_LEAF || PB_ENT_STATE(e) == PB_ENTRY_LAZY;
}

/* The ENTRY of `e` and of the calls above it that have none, outermost first.
 * The way down is marked in the entries' scratch words. */
void pb_emit(struct pb_thread *t, struct pb_entry *e)
{
	struct pb_entry *top = e;
	uint32_t n = 0;		/* guesses about stacks may have made a ring of them */

	PB_ENT_SCRATCH(e) = 0;
	for (struct pb_entry *p; unemitted(p = PB_ENT_PARENT(top)) && n++ < PB_NR_GATES; top = p)
		PB_ENT_SCRATCH(p) = (uint32_t)(((uint64_t)top - (uint64_t)pb_entries) / 16);
	for (n = 0; n <= PB_NR_GATES; n++) {
		if (unemitted(top))
			put_entry(t, top);
		if (top == e || !PB_ENT_SCRATCH(top))
			break;
		top = (struct pb_entry *)(pb_entries + (uint64_t)PB_ENT_SCRATCH(top) * 16);
	}
}

/* The call around e, among those that a chunk's list may name. One that ends
 * may be out of the chain already: it stands just inside its parent. */
static struct pb_entry *around(const struct pb_entry *e, struct pb_entry *ending)
{
	struct pb_entry *parent = PB_ENT_PARENT(e);

	return ending && e != ending && parent == PB_ENT_PARENT(ending) ? ending : parent;
}

static bool in_chain(const struct pb_thread *t, const struct pb_entry *entry)
{
	uint32_t n = 0;		/* guesses about stacks may have made a ring of them */

	for (const struct pb_entry *e = t->cur; !pb_is_root(e) && n++ < PB_NR_GATES; e = PB_ENT_PARENT(e))
		if (e == entry)
			return true;
	return false;
}

size_t pb_fgraph_open_calls(struct pb_writer *w, uint64_t *out, size_t max, uint32_t *depth,
			    const void *ending)
{
	struct pb_thread *t = pb_container_of(w, struct pb_thread, w);
	struct pb_entry *end = (struct pb_entry *)ending, *outside, *first, *e;
	size_t nr = 0, n = 0, i;

	if (!t->cur)
		return 0;
	outside = end && !in_chain(t, end) ? end : NULL;
	first = outside && t->cur == PB_ENT_PARENT(outside) ? outside : t->cur;
	for (e = first; e != end && PB_ENT_STATE(e) != PB_ENTRY_EMITTED; e = around(e, outside))
		;
	*depth = PB_ENT_DEPTH(e);
	for (e = first; !pb_is_root(e) && nr < max / 2 && n++ < PB_NR_GATES; e = around(e, outside))
		nr += e == end || PB_ENT_STATE(e) == PB_ENTRY_EMITTED;
	i = nr;
	for (e = first; i; e = around(e, outside)) {
		if (e != end && PB_ENT_STATE(e) != PB_ENTRY_EMITTED)
			continue;
		i--;
		out[2 * i] = pb_ext_word(PB_EXT_OPEN, 2, PB_ENT_SITE(e), 0);
		out[2 * i + 1] = PB_ENT_START(e);
	}
	return 2 * nr;
}

/* The record of a call that ended at `now`. */
static void put_end_of_call(struct pb_thread *t, struct pb_entry *e, uint64_t now)
{
	uint64_t start = PB_ENT_START(e), duration = now - start;
	uint32_t site = PB_ENT_SITE(e);

	switch (PB_ENT_STATE(e)) {
	case PB_ENTRY_EMITTED:
		pb_writer_put_end(&t->w, site_word(PB_TAG_EXIT, site), now, PB_TIME_BITS, NULL, 0, e);
		return;
	case PB_ENTRY_LAZY:
		if (duration < pb_thresh || (int64_t)duration < 0 ||
		    (pb_callers_only && !pb_site_is_caller(site)))
			return;
		if (unemitted(PB_ENT_PARENT(e)))
			pb_emit(t, PB_ENT_PARENT(e));
		break;
	case PB_ENTRY_LEAF:
		break;
	default:
		return;
	}
	if (duration >> PB_DUR_BITS) {
		uint64_t payload[2] = { start, now };

		pb_writer_put_plain(&t->w, pb_ext_word(PB_EXT_LONG, 3, site, 0), now, payload, 2);
		return;
	}
	pb_writer_put(&t->w, site_word(PB_TAG_LEAF, site) | duration << PB_DUR_SHIFT, now,
		      PB_LEAF_BITS, NULL, 0);
}

/* A call that was left without a return. Its gate may still be returned
 * through (a coroutine's stack that we took for another's); then nothing more
 * is written. */
static void close_skipped(struct pb_thread *t, struct pb_entry *e, uint64_t now)
{
	uint8_t state = PB_ENT_STATE(e);
	uint64_t start = state == PB_ENTRY_LEAF ? PB_ENT_START(e) | !PB_ENT_START(e) : PB_END_ENTRY;

	PB_ENT_STATE(e) = PB_ENTRY_CLOSED;
	if (state == PB_ENTRY_LEAF || state == PB_ENTRY_EMITTED)
		pb_writer_put_end(&t->w, pb_ext_word(PB_EXT_END, 2, PB_ENT_SITE(e), 0), now,
				  PB_EXT_TIME_BITS, &start, 1,
				  state == PB_ENTRY_EMITTED ? e : NULL);
}

/* A stack that is known to be one: what was written on it can be read. */
static bool own_memory(const struct pb_thread *t, uint64_t address)
{
	return t->stack->exact && pb_stack_holds(t->stack, address);
}

static void pop_skipped(struct pb_thread *t, uint64_t slot, uint64_t now)
{
	struct pb_entry *e;

	while (e = t->cur, !pb_is_root(e) && PB_ENT_SLOT(e) <= slot) {
		uint64_t at = PB_SLOT_ADDRESS(PB_ENT_SLOT(e));
		bool same = own_memory(t, at);

		close_skipped(t, e, now);
		t->cur = PB_ENT_PARENT(e);
		if (PB_ENT_OWNER(e) == t)
			pb_gate_free_if_dead(e, at == slot || same);
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
	if (PB_ENT_STATE(e) == PB_ENTRY_LEAF) {
		((uint32_t *)t->w.leaf)[2] = site->id;
		*t->w.leaf = PB_ENT_START(e);
	}
}

/* The function that entry e stands for ended by a jump to this one. */
static struct pb_target reuse(struct pb_thread *t, struct pb_entry *e, struct pb_site *site,
			      unsigned mode)
{
	bool silent = PB_ENT_STATE(e) == PB_ENTRY_SILENT;

	put_end_of_call(t, e, pb_clock());
	if (silent || PB_ENT_DEPTH(PB_ENT_PARENT(e)) >= pb_max_depth) {
		/* not recorded; it returns through e all the same */
		PB_ENT_BODY(e) = site->body;
		if (!silent)
			PB_ENT_STATE(e) = PB_ENTRY_CLOSED;
	} else {
		fill_entry(t, e, site, mode);
		if (mode & PB_ENTER_SILENT)
			PB_ENT_DEPTH(e) = PB_DEPTH_SILENT;
	}
	return (struct pb_target){ pb_gate_of(e), 1 };
}

/* What waits for another stack has an ENTRY, so that it stands before what
 * runs there. */
static void switch_stack(struct pb_thread *t, uint64_t slot)
{
	struct pb_stack *s = pb_thread_other_stack(t, slot);

	if (!s)
		return;
	if (PB_ENT_STATE(t->cur) == PB_ENTRY_LEAF)
		pb_emit(t, t->cur);
	pb_thread_use_stack(t, s);
}

static void put_call(struct pb_thread *t, struct pb_site *site)
{
	if (unemitted(t->cur))
		pb_emit(t, t->cur);
	pb_writer_put(&t->w, pb_ext_word(PB_EXT_CALL, 1, site->id, 0), pb_clock(),
		      PB_EXT_TIME_BITS, NULL, 0);
	pb_writer_no_return(&t->w);
}

static struct pb_target graph_enter(struct pb_thread *t, struct pb_site *site, uint64_t *slot,
				    unsigned mode)
{
	struct pb_target on = { site->body, 0 };
	uint64_t at = (uint64_t)slot;
	struct pb_entry *e, *cur;

	switch_stack(t, at);
	cur = t->cur;
	if (pb_is_gate(*slot)) {
		/* a tail call: the gate's entry is the current one, but for what
		 * guesses about stacks got wrong */
		e = pb_entry_of(*slot);
		if (PB_SLOT_ADDRESS(PB_ENT_SLOT(e)) != at)
			return on;
		if (e != cur)
			pop_skipped(t, at - 8, pb_clock());
		if (mode & PB_ENTER_CALL) {
			/* it may look at its return address: give it the real one */
			put_end_of_call(t, e, pb_clock());
			if (t->cur == e)
				t->cur = PB_ENT_PARENT(e);
			*slot = PB_ENT_RET(e);
			PB_ENT_SLOT(e) = 0;
			put_call(t, site);
			return on;
		}
		return reuse(t, e, site, mode);
	}
	if (PB_ENT_SLOT(cur) <= at && !pb_is_root(cur)) {
		pop_skipped(t, at, pb_clock());
		cur = t->cur;
	}
	if (PB_ENT_DEPTH(cur) >= pb_max_depth || (mode & PB_ENTER_NESTED && !PB_ENT_DEPTH(cur)))
		return on;
	if (mode & PB_ENTER_CALL || !(e = pb_gate_claim(t, at))) {
		if (!(mode & (PB_ENTER_SILENT | PB_ENTER_LAZY)))
			put_call(t, site);
		return on;
	}
	PB_ENT_PARENT(e) = cur;
	PB_ENT_DEPTH(e) = mode & PB_ENTER_SILENT ? PB_DEPTH_SILENT : PB_ENT_DEPTH(cur) + 1;
	PB_ENT_RET(e) = *slot;
	if (!(mode & (PB_ENTER_SILENT | PB_ENTER_LAZY)) && unemitted(cur))
		pb_emit(t, cur);
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
	if (pb_is_gate(parent_ip))
		parent_ip = PB_ENT_RET(pb_entry_of(parent_ip));
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
	return graph_enter(t, site, slot, mode);
}

/* current := e, closing what was skipped above it. False: e is not in the
 * chain, so what is current stays so. */
static bool make_current(struct pb_thread *t, struct pb_entry *e, uint64_t now)
{
	struct pb_entry *c = t->cur;

	while (c != e && !pb_is_root(c) && PB_ENT_SLOT(c) < PB_ENT_SLOT(e))
		c = PB_ENT_PARENT(c);
	if (c != e)
		return false;
	while (t->cur != e) {
		c = t->cur;
		close_skipped(t, c, now);
		t->cur = PB_ENT_PARENT(c);
		if (PB_ENT_OWNER(c) == t)
			pb_gate_free_if_dead(c, own_memory(t, PB_SLOT_ADDRESS(PB_ENT_SLOT(c))));
	}
	return true;
}

/* Frees nothing: the assembly does, when it has the return address. */
uint64_t pb_exit(struct pb_entry *e, uint64_t now, unsigned how, uint64_t *slot)
{
	struct pb_thread *t = pb_thread_get((uint64_t)slot);

	if (t && !pb_latched) {
		if (how == PB_EXIT_WHOLE) {
			switch_stack(t, (uint64_t)slot);
			if (make_current(t, e, now))
				t->cur = PB_ENT_PARENT(e);
		}
		put_end_of_call(t, e, now);
		if (PB_ENT_OWNER(e) == t)
			t->hint = e;
	}
	return PB_ENT_RET(e);
}

void pb_hook_enter(struct pb_site *site, uint64_t at, unsigned mode)
{
	struct pb_thread *t;
	struct pb_entry *e, *cur;

	if (pb_latched || !(t = pb_thread_get(at)))
		return;
	switch_stack(t, at);
	pop_skipped(t, at, pb_clock());
	cur = t->cur;
	if (PB_ENT_DEPTH(cur) >= pb_max_depth || (mode & PB_ENTER_NESTED && !PB_ENT_DEPTH(cur)))
		return;
	e = pb_gate_claim(t, at);
	if (!e)
		return put_call(t, site);
	PB_ENT_PARENT(e) = cur;
	PB_ENT_DEPTH(e) = mode & PB_ENTER_SILENT ? PB_DEPTH_SILENT : PB_ENT_DEPTH(cur) + 1;
	if (!(mode & (PB_ENTER_SILENT | PB_ENTER_LAZY)) && unemitted(cur))
		pb_emit(t, cur);
	fill_entry(t, e, site, mode);
	PB_ENT_SLOT(e) = at + PB_SLOT_HOOK;
	pb_barrier();
	t->cur = e;
	t->hint = (struct pb_entry *)((char *)e + 16);
}

void pb_hook_exit(struct pb_site *site, uint64_t at)
{
	uint64_t now = pb_clock();
	struct pb_thread *t;
	struct pb_entry *e, *c;

	if (pb_latched || !(t = pb_thread_get(at)))
		return;
	switch_stack(t, at);
	/* the last one of a function may be a jump: then `at` is further up */
	for (e = t->cur; !pb_is_root(e); e = PB_ENT_PARENT(e))
		if (PB_ENT_SITE(e) == site->id && PB_SLOT_IS_HOOK(PB_ENT_SLOT(e)))
			break;
	if (pb_is_root(e) || PB_ENT_SLOT(e) > at + PB_SLOT_HOOK)
		return;		/* entered before it was traced */
	while ((c = t->cur) != e) {
		close_skipped(t, c, now);
		t->cur = PB_ENT_PARENT(c);
		pb_gate_free_if_dead(c, false);
	}
	t->cur = PB_ENT_PARENT(e);
	put_end_of_call(t, e, now);
	if (PB_ENT_OWNER(e) == t)
		t->hint = e;
	PB_ENT_SLOT(e) = 0;
}
