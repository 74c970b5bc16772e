/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes the records of calls: a call's ENTRY, and the record of the call's end. If the call was
 * skipped (it ended without a hooked exit), the record of its end is an END. As long as a call has
 * made no traced call, it may be a leaf. So the call's ENTRY is usually written at its first traced
 * call, before the callee's records (PB_ENTRY_* in arch/layout.h).
 *
 * A signal handler may interrupt each function of this file at any instruction: see calls.c.
 */
#include "engine/graph/call_records.h"
#include "base/base.h"
#include "engine/clock.h"
#include "engine/graph/thread_words.h"
#include "engine/text/ftrace.h"

uint8_t pb_callers_only;

static uint64_t missed;
uint64_t *pb_prog_missed = &missed;

static uint64_t site_word(uint64_t tag, uint32_t site)
{
	return tag | (uint64_t)site << PB_SITE_SHIFT;
}

static bool change_state(struct pb_open_call *c, uint8_t from, uint8_t to)
{
	return __atomic_compare_exchange_n(&c->state, &from, to, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

/* Before code writes an ENTRY, it claims the ENTRY (claim_entry()). If a handler interrupts this
 * code, and then leaves by a jump, the claim is left over. Returns true if all claims are certainly
 * left over, because none of the agent's code is interrupted. If the program may have unseen
 * handlers, interrupted code may go unnoticed, so the result is false. */
static bool claims_are_old(const struct pb_thread *t)
{
	return !t->w.nr_pending && !pb_ring_unseen;
}

static bool is_claimed(uint8_t state)
{
	return state == PB_ENTRY_CLAIMED || state == PB_ENTRY_RECLAIMED;
}

/* Takes the right to write the ENTRY of c. old: the result of claims_are_old(). False: c has an
 * ENTRY or gets none, or is claimed by code that may go on. */
static bool claim_entry(struct pb_open_call *c, bool old)
{
	uint8_t state = c->state;

	if (pb_unlikely(is_claimed(state)))
		return old;
	while (pb_call_is_unemitted(state))
		if (__atomic_compare_exchange_n(&c->state, &state,
						state == PB_ENTRY_LATE ? PB_ENTRY_RECLAIMED :
									 PB_ENTRY_CLAIMED,
						false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* Gives c the state PB_ENTRY_LATE, because its ENTRY is claimed and can't be written now. If the
 * call wasn't late before, it is counted before it gets this state. So if a handler leaves this
 * code by a jump, the count of late calls is too high, not too low. */
static void put_off(struct pb_thread *t, struct pb_open_call *c)
{
	struct pb_owner o = pb_writer_owner(&t->w);

	if (change_state(c, PB_ENTRY_RECLAIMED, PB_ENTRY_LATE) || c->state != PB_ENTRY_CLAIMED)
		return;
	pb_writer_late(&t->w, o);
	change_state(c, PB_ENTRY_CLAIMED, PB_ENTRY_LATE);
}

/* Counts a late call that has ended as lost. */
static void lose_late(struct pb_thread *t)
{
	struct pb_owner o = pb_writer_owner(&t->w);

	pb_writer_lost(&t->w);
	pb_writer_regained(&t->w, o);
}

/* Writes the ENTRY of c, which the caller has claimed. In a child that was forked meanwhile, the
 * call isn't claimed any more, because the parent process writes its ENTRY. So the child writes
 * nothing. False: there was no room. The call's next callee, or the call's end, will try again. */
static bool put_entry(struct pb_thread *t, struct pb_open_call *c)
{
	struct pb_owner o = pb_writer_owner(&t->w);
	bool late = change_state(c, PB_ENTRY_RECLAIMED, PB_ENTRY_EMITTED), written;

	if (!late && !change_state(c, PB_ENTRY_CLAIMED, PB_ENTRY_EMITTED))
		return true;
	written = pb_writer_put_entry(&t->w, site_word(PB_TAG_ENTRY, c->site), c->start);
	if (written && late)
		pb_writer_regained(&t->w, o);
	if (!written && !late)
		pb_writer_late(&t->w, o);
	if (!written)
		change_state(c, PB_ENTRY_EMITTED, PB_ENTRY_LATE);
	return written;
}

/*
 * Before the first ENTRY is written, all of the ENTRYs are claimed, from the innermost call
 * outwards. If a handler interrupts this function and makes calls, the handler finds either none of
 * the calls claimed, or the innermost call claimed. So the handler writes either all of the ENTRYs
 * or none, and the ENTRYs come in the order of the calls. The handler's own records may come before
 * the ENTRYs.
 */
bool pb_call_emitted(struct pb_thread *t, struct pb_open_call *c)
{
	struct pb_open_call *first = c, *p;
	bool room = true, old;

	if (pb_likely(c->state == PB_ENTRY_EMITTED))
		return true;
	old = claims_are_old(t);
	if (!claim_entry(c, old))
		return true;
	while (p = pb_call_outer(first), pb_call_is_open(p) && claim_entry(p, old))
		first = p;
	for (p = first; p; p = pb_open_above(p)) {
		if (p == c || (pb_open_is_live(p) && is_claimed(p->state))) {
			if (room)
				room = put_entry(t, p);
			else
				put_off(t, p);
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

	if (pb_call_unemitted(c) && !(duration >> PB_EXT_ADDRESS_BITS))
		pb_writer_put(&t->w,
			      pb_ext_word(PB_EXT_TAIL_LEAF, PB_EXT_TAIL_LEAF_WORDS, c->site, 0),
			      now, PB_EXT_TIME_BITS, &word, 1);
	else if (!claim_entry(c, false) || put_entry(t, c))
		pb_writer_put_end(&t->w, pb_ext_word(PB_EXT_TAIL, PB_EXT_TAIL_WORDS, c->site, 0),
				  now, PB_EXT_TIME_BITS, NULL, 0, c);
	else
		lose_late(t);
}

static bool is_caller(struct pb_thread *t, uint32_t site)
{
	uint64_t before = pb_look_begin(t);
	bool yes = pb_site_is_caller(site);

	pb_look_end(t, before);
	return yes;
}

/* Whether the call c, which is LAZY and ends at `now`, is recorded. */
static bool is_selected(struct pb_thread *t, const struct pb_open_call *c, uint64_t now)
{
	uint64_t duration = now - c->start;

	return duration >= pb_thresh && (int64_t)duration >= 0 &&
	       (!pb_callers_only || is_caller(t, c->site));
}

void pb_call_put_end(struct pb_thread *t, struct pb_open_call *c, uint64_t now, bool jump)
{
	uint64_t duration = now - c->start;

	/* if the ENTRY is still claimed, a jump has left the code that claimed it */
	if (pb_unlikely(is_claimed(c->state)))
		put_off(t, c);
	/* this call isn't a leaf: its callees were lost, or are recorded without its ENTRY */
	if (pb_unlikely(c->state == PB_ENTRY_LATE) && !pb_call_emitted(t, c)) {
		lose_late(t);
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
		if (!is_selected(t, c, now))
			return;
		break;
	case PB_ENTRY_LEAF:
		break;
	default:
		return;
	}
	if (!pb_call_emitted(t, pb_call_outer(c)))
		pb_writer_lost(&t->w);
	else if (jump)
		put_tail(t, c, now);
	else if (duration >> PB_DUR_BITS)
		pb_writer_put_long(&t->w, c->site, c->start, now);
	else
		pb_writer_put(&t->w, site_word(PB_TAG_LEAF, c->site) | duration << PB_DUR_SHIFT,
			      now, PB_LEAF_BITS, NULL, 0);
}

void (*pb_call_ended)(uint32_t site, uint64_t ticks);

/* Calls pb_call_ended(). The agent's thread may set this pointer to NULL meanwhile, so the pointer
 * is read once. A call that is open only for eBPF programs may have no start. */
void pb_call_report(const struct pb_open_call *c, uint64_t now)
{
	void (*ended)(uint32_t, uint64_t) = __atomic_load_n(&pb_call_ended, __ATOMIC_RELAXED);

	if (pb_unlikely(ended) && c->start)
		ended(c->site, now - c->start);
}

/* Whether calls on t's stack may have ended unseen, while exits were idle (period.h). */
static bool is_of_former_period(const struct pb_thread *t)
{
	return t->stack->period != __atomic_load_n(&pb_period, __ATOMIC_RELAXED);
}

/* The time at which a skipped call ended isn't known. A LAZY call counts as long enough if it is
 * long enough now. */
void pb_call_skipped(void *context, const struct pb_open_call *call)
{
	struct pb_thread *t = context;
	struct pb_open_call *c = (struct pb_open_call *)call;
	struct pb_owner o = pb_writer_owner(&t->w);
	bool named = c->state != PB_ENTRY_LATE || pb_call_emitted(t, c);
	/* If interrupted code has claimed the ENTRY, the change to SILENT takes the claim away. If
	 * that code goes on later, it doesn't write the ENTRY. */
	bool late = change_state(c, PB_ENTRY_RECLAIMED, PB_ENTRY_SILENT);
	uint64_t word = pb_ext_word(PB_EXT_END, PB_EXT_END_WORDS, c->site, 0), now = pb_clock();
	bool former = is_of_former_period(t);
	bool lazy = c->state == PB_ENTRY_LAZY && !former && is_selected(t, c, now);
	bool whole = late || lazy || c->state == PB_ENTRY_LEAF ||
		     change_state(c, PB_ENTRY_CLAIMED, PB_ENTRY_SILENT);
	uint64_t start = whole ? c->start | !c->start : PB_END_ENTRY;

	if (c->watch && c->watch != PB_WATCH_BELOW)
		__atomic_add_fetch(pb_prog_missed, 1, __ATOMIC_RELAXED);
	if (!former)
		pb_call_report(c, now);
	if (c->state == PB_ENTRY_EMITTED)
		pb_writer_put_end(&t->w, word, now, PB_EXT_TIME_BITS, &start, 1, c);
	else if (whole && pb_call_emitted(t, pb_call_outer(c)))
		pb_writer_put(&t->w, word, now, PB_EXT_TIME_BITS, &start, 1);
	else if (whole || !named)
		pb_writer_lost(&t->w);
	if (late || !named)
		pb_writer_regained(&t->w, o);
}

void pb_call_cut(void *context, const struct pb_open_call *c)
{
	struct pb_thread *t = context;
	struct pb_owner o = pb_writer_owner(&t->w);

	if (c->record == PB_OPEN_UNRESERVED || c->record == PB_OPEN_RESERVED)
		pb_call_skipped(context, c);
	else if (c->record == PB_OPEN_UNKNOWN && c->state == PB_ENTRY_EMITTED)
		pb_writer_missed(&t->w);
	else if (c->record == PB_OPEN_UNKNOWN && c->state == PB_ENTRY_LAZY &&
		 !is_selected(t, c, pb_clock()))
		return;
	else if (c->record == PB_OPEN_UNKNOWN &&
		 (c->state <= PB_ENTRY_LATE || is_claimed(c->state))) {
		pb_writer_lost(&t->w);
		if (c->state == PB_ENTRY_LATE || c->state == PB_ENTRY_RECLAIMED)
			pb_writer_regained(&t->w, o);
	}
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

void pb_calls_close_stack(struct pb_thread *t, struct pb_stack *s, uint64_t slot)
{
	struct pb_stack *back = t->stack;

	if (!pb_stack_visit(t, s))
		return;
	if (t->stack == s)
		pb_open_close(&t->top, slot, PB_HOOKS(t));
	pb_stack_leave(t, s, back);
}

void pb_calls_handler_over(struct pb_thread *t, uint64_t slot)
{
	pb_open_close(&t->top, slot, PB_HOOKS(t));
}
