/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread that has many blocks looks at all of them in a round, a few at a
 * time, for entries that can be freed. A round is due when it has twice the
 * blocks that it had after the last one, or as many if that one found much: so
 * there is never much more garbage than there are calls.
 *
 * Slots on other stacks can be read in some places only: not on a coroutine's
 * stack whose bounds are guessed, not in libc. There the thread just wants a
 * sweep, and takes the slow way at every entry until one is in such a place.
 */
#include <asm/errno.h>
#include "engine/sweep.h"
#include "engine/interrupt.h"
#include "engine/fgraph.h"
#include "arch/x86_64/fault.h"

#define ROUND_FROM	64	/* blocks that a thread takes without looking back */
#define SWEEP_BLOCKS	64	/* that one claim looks at */
#define SWEEP_FAULTS	256	/* and the reads that may end in a fault */
#define READY_FREE	16	/* entries that make a block worth coming back to */
#define READY_LOW	4	/* of PB_READY_BLOCKS: more are wanted before there are none */
#define WANT_HITS	256	/* entries that take the slow way when a sweep is wanted */
#define WANT_PAUSE	512	/* claims that let it be, if none of them was in a good place */
#define UNKNOWN_CLAIMS	4096	/* in which the mask wasn't known once */
#define PAGE		4096ul

struct sweep {
	struct pb_thread *t;
	const struct pb_hit *h;
	unsigned faults;
	struct pb_stack *stack;	/* the last one that was looked up */
	/* A page that wasn't there. True as long as nobody recorded anything since
	 * nor freed a dead entry: a handler may map it and leave calls there. */
	uint64_t gone, pos, lost;
	uint32_t nr_freed;
};

enum verdict { KEEP, DEAD, GONE };	/* GONE: and its memory too */

static bool still_gone(const struct sweep *s, uint64_t at)
{
	return (at & -PAGE) == s->gone && s->nr_freed == s->t->nr_freed &&
	       s->pos == s->t->w.pos && s->lost == s->t->w.lost;
}

static void note_gone(struct sweep *s, uint64_t at)
{
	s->pos = s->t->w.pos;
	s->lost = s->t->w.lost;
	s->nr_freed = s->t->nr_freed;
	s->gone = at & -PAGE;
	s->faults++;
}

static enum verdict judge(struct sweep *s, const struct pb_entry *e, uint64_t word)
{
	bool hook = PB_SLOT_IS_HOOK(word);
	uint64_t at = hook ? word - PB_SLOT_HOOK : PB_SLOT_ADDRESS(word), value;
	int err;

	if (!hook && (!(word & PB_SLOT_LIVE) || word == PB_SLOT_GUARD))
		return KEEP;
	if (still_gone(s, at))
		return GONE;
	err = pb_read_slot(s->t, s->h, at, &value);
	if (err == -EFAULT)
		note_gone(s, at);
	if (err)
		return err == -EFAULT ? GONE : KEEP;
	return hook || pb_gate_leads(value, at, e) ? KEEP : DEAD;
}

/* A call that is in no chain any more gets no END. If its ENTRY found no room, there is
 * nothing of it in the data. */
static void bury(struct pb_thread *t, struct pb_entry *e, uint64_t word)
{
	bool late = PB_ENT_STATE(e) == PB_ENTRY_LATE;

	if (PB_ENT_OWNER(e) != t)
		return;
	/* what still names it as its parent mustn't write its ENTRY any more */
	if (pb_unlikely(late))
		PB_ENT_STATE(e) = PB_ENTRY_CLOSED;
	if (!pb_gate_free(e, word))
		return;
	t->nr_freed++;
	if (pb_unlikely(late))
		pb_writer_lost(&t->w);
}

/* The calls at the end of the stack's chain that are dead are closed; the stack
 * is nobody's if its memory is gone with all of them. */
static void close_dead(struct sweep *s, struct pb_stack *on)
{
	struct pb_stack *back = s->t->stack;
	struct pb_thread *t = s->t;
	enum verdict v = KEEP;

	if (!pb_stack_visit(t, on))
		return;
	while (t->stack == on && !pb_is_root(t->cur)) {
		struct pb_entry *e = t->cur;
		uint64_t word = PB_ENT_SLOT(e);

		v = judge(s, e, word);
		if (v == KEEP)
			break;
		pb_fgraph_close(t, e, pb_clock());
		bury(t, e, word);
		if (v == GONE)
			note_gone(s, PB_SLOT_ADDRESS(word));
	}
	pb_stack_leave(t, on, back);
	if (v == GONE) {
		s->stack = NULL;
		pb_stack_drop(on);
	}
}

/* The stack on which the address lies, if calls are open there, and t was the
 * last to run on it. */
static struct pb_stack *chain_at(struct sweep *s, uint64_t at)
{
	if (pb_stack_holds(&s->t->own, at))
		return NULL;
	if (!s->stack || !pb_stack_holds(s->stack, at))
		s->stack = pb_stack_overlapping(NULL, at, at + 1);
	return s->stack && s->stack->thread == s->t ? s->stack : NULL;
}

/* Perhaps a call that a jump has skipped, whose END is still to be written: at or
 * above the innermost of a stack on which t is. Freed, it would break the chain. */
static bool in_chain(const struct pb_thread *t, const struct pb_entry *e, uint64_t word)
{
	uint64_t at = PB_SLOT_ADDRESS(word);
	const struct pb_entry *cur = NULL;

	if (pb_stack_holds(t->stack, at))
		cur = t->cur;
	else if (pb_stack_holds(&t->own, at))
		cur = t->own.cur;
	return cur && !pb_is_watched(e) && PB_ENT_STATE(e) != PB_ENTRY_CLOSED && word >= PB_ENT_SLOT(cur);
}

/* How many of its entries are free then. */
static unsigned sweep_block(struct sweep *s, int32_t b)
{
	unsigned nr = 0;

	for (uint32_t i = 0; i < PB_GATES_PER_BLOCK - 1; i++) {
		struct pb_entry *e = pb_gate_in_block(b, i);
		uint64_t word = PB_ENT_SLOT(e);
		struct pb_stack *on;

		if (word && judge(s, e, word) != KEEP) {
			on = chain_at(s, PB_SLOT_ADDRESS(word));
			if (on)
				close_dead(s, on);
			if (PB_ENT_SLOT(e) == word && !in_chain(s->t, e, word))
				bury(s->t, e, word);
		}
		nr += !PB_ENT_SLOT(e);
	}
	return nr;
}

static bool is_due(const struct pb_thread *t)
{
	return t->round || t->nr_blocks >= (t->round_at ? t->round_at : ROUND_FROM);
}

/* The next blocks of the round; ready are those with free entries. */
static void sweep(struct pb_thread *t, const struct pb_hit *h)
{
	struct sweep s = { .t = t, .h = h };

	/* a handler's sweep may have ended the round below an interrupted one */
	if (!t->round || t->round > t->nr_blocks)
		t->round = t->nr_blocks;
	for (int n = 0; t->round && n < SWEEP_BLOCKS && s.faults < SWEEP_FAULTS; n++) {
		int32_t b = t->cursor == PB_NO_BLOCK ? t->first_block : t->cursor;
		uint32_t nr = t->nr_ready;

		if (nr == PB_READY_BLOCKS)
			break;
		t->cursor = pb_gate_next_block(b);
		t->round--;
		if (sweep_block(&s, b) < READY_FREE)
			continue;
		t->ready[nr] = b;
		t->nr_ready = nr + 1;
		t->round_found++;
	}
	if (t->round)
		return;
	t->round_at = t->round_found * 4 >= t->nr_blocks ? t->nr_blocks : 2 * t->nr_blocks;
	t->round_found = 0;
}

static struct pb_entry *claim_ready(struct pb_thread *t, uint64_t slot)
{
	struct pb_entry *e = NULL;
	uint32_t nr;

	while (!e && (nr = t->nr_ready)) {
		t->nr_ready = nr - 1;
		e = pb_gate_claim_in(t->ready[nr - 1], slot);
	}
	return e;
}

/* A thread that doesn't know its mask reads what it may anywhere; but one that
 * may know it soon, as in a signal handler, not before long: rounds that find
 * nothing make the next ones rare. */
static bool is_good_place(struct pb_thread *t, const struct pb_hit *h)
{
	if (pb_may_read(t, h)) {
		t->unknown = 0;
		return true;
	}
	if (pb_unblocked.known)
		return false;
	return !pb_unblocked.slot || t->unknown++ >= UNKNOWN_CLAIMS;
}

static void want(struct pb_thread *t)
{
	if (t->want)
		return;
	if (t->pause) {
		t->pause--;
		return;
	}
	t->want = WANT_HITS;
	t->lo = ~0ul;
}

void pb_sweep_wanted(struct pb_thread *t, const struct pb_hit *h)
{
	bool good = is_good_place(t, h);

	if (!good && --t->want)
		return;
	t->want = 0;
	t->lo = t->stack->lo;
	if (good)
		sweep(t, h);
	else
		t->pause = WANT_PAUSE;
}

/* No block is to be had: all of the thread's own; then nothing for a while. */
static struct pb_entry *claim_last(struct pb_thread *t, const struct pb_hit *h)
{
	struct pb_entry *e = NULL;

	do {
		sweep(t, h);
		e = claim_ready(t, h->slot);
	} while (!e && t->round);
	if (e)
		return e;
	t->wait = t->nr_blocks * PB_GATES_PER_BLOCK;
	t->wait_stack = t->stack;
	t->wait_slot = h->slot;
	return NULL;
}

struct pb_entry *pb_claim(struct pb_thread *t, const struct pb_hit *h)
{
	struct pb_entry *e;

	/* a deep recursion goes on without entries, until it is back where it had
	 * the last one */
	if (t->wait && --t->wait && (t->stack != t->wait_stack || h->slot <= t->wait_slot))
		return NULL;
	t->wait = 0;
	e = pb_gate_claim(t, h->slot);
	if (e)
		return e;
	if (t->nr_ready < READY_LOW && is_due(t)) {
		if (is_good_place(t, h))
			sweep(t, h);
		else
			want(t);
	}
	e = claim_ready(t, h->slot);
	if (!e)
		e = pb_gate_claim_new(t, h->slot);
	if (!e && is_good_place(t, h))
		e = claim_last(t, h);
	else if (!e)
		want(t);
	return e;
}

void pb_free_if_dead(struct pb_thread *t, const struct pb_hit *h, struct pb_entry *e)
{
	struct sweep s = { .t = t, .h = h };
	uint64_t word = PB_ENT_SLOT(e);

	if (PB_SLOT_IS_HOOK(word) || judge(&s, e, word) != KEEP)
		bury(t, e, word);
}

void pb_close_stack(struct pb_thread *t, const struct pb_hit *h, struct pb_stack *on)
{
	struct pb_stack *back = t->stack;

	if (!pb_stack_visit(t, on))
		return;
	while (t->stack == on && !pb_is_root(t->cur)) {
		struct pb_entry *e = t->cur;

		pb_fgraph_close(t, e, pb_clock());
		pb_free_if_dead(t, h, e);
	}
	pb_stack_leave(t, on, back);
}
