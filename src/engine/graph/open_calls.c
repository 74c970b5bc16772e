/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The slow paths of open calls. See open_calls.h and doc/design/open-calls.md.
 *
 * Where a handler may have changed an entry's word since it was read, the word is changed by
 * compare-and-swap. The instruction needs no lock prefix, because only handlers of the same thread
 * run concurrently.
 */
#include "engine/graph/open_calls.h"
#include <stdbool.h>
#include "arch/arch.h"
#include "base/base.h"

/* Limits of the loops that close calls and claim entries: signal handlers could make these loops
 * endless. A handler may call functions, and jump out of these functions to a place inside the
 * handler. Then the calls of these functions stay open. If handlers do this at each instruction of
 * the code that closes calls, they leave calls open faster than the code closes them. Or each
 * handler closes just the entry that the code looks at, and leaves another call open. Then the code
 * finds a free entry, searches again, and finds the other call. So the code gives up after it has
 * looked at MOST_LEFT more entries than were in use at first. A handler may also take the entry
 * that the code is about to claim. After MOST_TRIES attempts to claim an entry, the code gives
 * up. */
#define MOST_LEFT	256
#define MOST_TRIES	16

/* The states of an entry, which its word shows. */
enum open_state {
	OPEN_FREE, OPEN_END, OPEN_FOOT, OPEN_LIVE, OPEN_CLAIMED, OPEN_LEAVING, OPEN_CLOSING
};

#define LEAVING		((uint64_t)PB_OPEN_LEAVING << 56)
#define SLOT		((1ul << 56) - 8)

/* Slots are 8-aligned, so a word's lowest three bits can show the state, together with the word's
 * sign. If the word is negative, but not PB_OPEN_FREE, and these bits aren't 0, the entry is
 * claimed or closing. In ~word, the three bits are 0 for a claimed entry and 2 for a closing entry
 * (arch/open_call.h). */
static enum open_state state_of(int64_t word)
{
	if (word == PB_OPEN_FREE)
		return OPEN_FREE;
	if (word == PB_OPEN_END)
		return OPEN_END;
	if (word > 0)
		return word & 7 ? OPEN_FOOT : OPEN_LIVE;
	if (!(word & 7))
		return OPEN_LEAVING;
	return ~word & 7 ? OPEN_CLOSING : OPEN_CLAIMED;
}

/* Returns the slot from which the word was made (arch/open_call.h). For the foot of a segment
 * (open_calls.h), returns the slot of the call that the foot stands for. */
static uint64_t slot_of(int64_t word)
{
	if (word > 0)
		return ((uint64_t)word + 1) & ~7ul;
	return (uint64_t)(word & 7 ? ~word : word) & SLOT;
}

static int64_t read_word(const struct pb_open_call *c)
{
	return *(volatile const int64_t *)&c->word;
}

static bool swap(struct pb_open_call *c, int64_t from, int64_t to)
{
	return pb_cmpxchg_local((uint64_t *)&c->word, (uint64_t)from, (uint64_t)to);
}

static void set_top(struct pb_open_call **top, struct pb_open_call *c)
{
	*(struct pb_open_call *volatile *)top = c;
}

void pb_open_segment_init(struct pb_open_segment *s, struct pb_open_segment *prev, uint64_t foot)
{
	for (unsigned i = 1; i <= PB_OPEN_CALLS; i++)
		s->call[i].word = PB_OPEN_FREE;
	s->call[PB_OPEN_CALLS + 1].word = PB_OPEN_END;
	s->call[0].word = (int64_t)(foot - 1);
	s->call[0].site = 0;
	s->call[0].state = prev ? PB_ENTRY_FOOT : PB_ENTRY_EMITTED;
	s->prev = prev;
	s->stack = prev ? prev->stack : NULL;
	s->depth = prev ? prev->depth + PB_OPEN_CALLS : 0;
	s->next = NULL;
	s->final = false;
}

struct pb_open_call *pb_open_above(struct pb_open_call *c)
{
	struct pb_open_segment *s = pb_open_segment_of(c);

	if (read_word(c + 1) != PB_OPEN_END)
		return c + 1;
	return s->next ? &s->next->call[1] : NULL;
}

struct pb_open_call *pb_open_below(const struct pb_open_call *c)
{
	struct pb_open_segment *s = pb_open_segment_of(c);

	if (c - 1 != s->call || !s->prev)
		return (struct pb_open_call *)c - 1;
	return &s->prev->call[PB_OPEN_CALLS];
}

struct pb_open_call *pb_open_innermost(struct pb_open_call *c)
{
	struct pb_open_call *next;

	if (c == pb_open_segment_of(c)->call && pb_open_segment_of(c)->prev)
		c = pb_open_below(c + 1);
	while ((next = pb_open_above(c)) && read_word(next) != PB_OPEN_FREE)
		c = next;
	while (!pb_open_is_root(c) && read_word(c) == PB_OPEN_FREE)
		c = pb_open_below(c);
	return c;
}

/* Entry c is in the middle of a change, because the code that changes it was interrupted. Returns
 * whether that code never resumes, because a jump has left it. slot: the slot of the present hit.
 * The interrupted code ran for an earlier hit. If the earlier hit's slot is at or below `slot`, the
 * stack was unwound past the interrupted code, so a jump has left this code. Otherwise the present
 * hit may be in a handler that interrupted the code, further down on the stack. */
static bool abandoned(const struct pb_open_call *c, int64_t word, uint64_t slot)
{
	if (state_of(word) == OPEN_CLOSING)
		return *(volatile const uint64_t *)&c->ret <= slot;
	return slot_of(word) <= slot;
}

/* Returns whether calls after c in the array may have the same slot as c. There are two cases.
 * Either only eBPF programs still wait for the return of c: its function may have jumped to another
 * function, which returns in its place. Or c has no return address (PB_OPEN_NO_RET): several such
 * calls may have the same slot. */
static bool is_shared(const struct pb_open_call *c)
{
	return !pb_open_is_root(c) && (*(volatile const uint8_t *)&c->state == PB_ENTRY_PROG ||
				       *(volatile const uint64_t *)&c->ret == PB_OPEN_NO_RET);
}

/* Closes the call in entry c if the entry's word is still `word`. slot: the slot of the hit. */
static void close_call(struct pb_open_call *c, int64_t word, uint64_t slot,
		       const struct pb_open_hooks *hooks)
{
	int64_t closing = ~(int64_t)(slot_of(word) + 2);

	enum open_state state = state_of(word);

	if (state != OPEN_LIVE && state != OPEN_LEAVING) {
		swap(c, word, PB_OPEN_FREE);
		return;
	}
	*(volatile uint64_t *)&c->ret = slot;
	if (!swap(c, word, closing))
		return;
	if (state == OPEN_LIVE)
		hooks->skipped(hooks->context, c);
	else
		hooks->cut(hooks->context, c);
	swap(c, closing, PB_OPEN_FREE);
}

/* Slots descend along the array. Returns whether entry c follows this rule. If it doesn't, c is a
 * leftover: the entry before c was freed and is used by a newer call, while c stayed. */
static bool descends(const struct pb_open_call *c, int64_t word)
{
	const struct pb_open_call *below = pb_open_below(c);
	uint64_t slot = slot_of(word), outer = slot_of(read_word(below));

	return slot < outer || (slot == outer && is_shared(below));
}

/* Closes all calls in slots lower than `slot`. If `itself` is set, also closes a call in `slot`,
 * unless is_shared(). Returns the innermost entry that stays. NULL: handlers leave calls open
 * faster than this function closes them. */
static struct pb_open_call *close_above(struct pb_open_call *c, uint64_t slot, bool itself,
					const struct pb_open_hooks *hooks)
{
	uint32_t most;

	c = pb_open_innermost(c);
	most = pb_open_depth(c) + MOST_LEFT;
	for (; !pb_open_is_root(c); c = pb_open_innermost(c)) {
		int64_t word = read_word(c);

		if (!most--)
			return NULL;
		if (word == PB_OPEN_FREE)	/* a handler has just closed the call */
			continue;
		if (descends(c, word)) {
			if (state_of(word) == OPEN_LIVE) {
				if (slot_of(word) > slot ||
				    (slot_of(word) == slot && (!itself || is_shared(c))))
					break;
			} else if (!abandoned(c, word, slot)) {
				break;
			}
		}
		close_call(c, word, slot, hooks);
	}
	return c;
}

/* Returns the first entry of the segment after c's segment. If there is no such segment, adds one.
 * NULL: no memory is left, or c's segment must be the last one. */
static struct pb_open_call *grown(struct pb_open_call *c, const struct pb_open_hooks *hooks)
{
	struct pb_open_segment *s = pb_open_segment_of(c), *fresh;

	fresh = s->final ? NULL : hooks->segment(hooks->context);
	if (fresh) {
		pb_open_segment_init(fresh, s, slot_of(read_word(c)));
		if (!pb_cmpxchg_local((uint64_t *)&s->next, 0, (uint64_t)fresh))
			hooks->unused(hooks->context, fresh);
	}
	return s->next ? &s->next->call[1] : NULL;
}

struct pb_open_call *pb_open_enter(struct pb_open_call **top, uint64_t slot,
				   const struct pb_open_hooks *hooks)
{
	struct pb_open_call *c, *mine;
	int tries = 0;

	do {
		c = close_above(*top, slot, true, hooks);
		if (!c || tries++ == MOST_TRIES)
			return NULL;
		mine = pb_open_above(c);
		if (!mine)
			mine = grown(c, hooks);
		if (!mine)
			return NULL;
		/* `mine` is the first call of its segment: make the segment's foot stand for c */
		if (mine == pb_open_segment_of(mine)->call + 1 && pb_open_segment_of(mine)->prev) {
			*(volatile uint8_t *)&mine[-1].state = PB_ENTRY_FOOT;
			*(volatile int64_t *)&mine[-1].word = (int64_t)(slot_of(read_word(c)) - 1);
		}
	} while (!swap(mine, PB_OPEN_FREE, ~(int64_t)slot));
	set_top(top, mine);
	return mine;
}

struct pb_open_call *pb_open_push(struct pb_open_call **top, struct pb_open_call *c, uint64_t slot)
{
	if (!swap(c + 1, PB_OPEN_FREE, ~(int64_t)slot))
		return NULL;
	set_top(top, c + 1);
	return c + 1;
}

void pb_open_commit(struct pb_open_call *call, uint64_t slot)
{
	pb_barrier();
	*(volatile int64_t *)&call->word = (int64_t)slot;
}

struct pb_open_call *pb_open_parent(const struct pb_open_call *call)
{
	struct pb_open_call *c = pb_open_below(call);

	while (!pb_open_is_root(c) && state_of(read_word(c)) != OPEN_LIVE)
		c = pb_open_below(c);
	return c;
}

bool pb_open_is_live(const struct pb_open_call *call)
{
	return state_of(read_word(call)) == OPEN_LIVE;
}

bool pb_open_is_leaving(const struct pb_open_call *call, uint64_t *slot)
{
	int64_t word = read_word(call);

	*slot = slot_of(word);
	return state_of(word) == OPEN_LEAVING;
}

void pb_open_close(struct pb_open_call **top, uint64_t slot, const struct pb_open_hooks *hooks)
{
	struct pb_open_call *c = close_above(*top, slot, true, hooks);

	if (c)
		set_top(top, c);
}

bool pb_open_forget(struct pb_open_call **top, uint64_t slot, const struct pb_open_hooks *hooks)
{
	struct pb_open_call *c;

	for (c = pb_open_innermost(*top); !pb_open_is_root(c); c = pb_open_below(c)) {
		int64_t word = read_word(c);

		if (word == PB_OPEN_FREE)
			continue;
		if (state_of(word) != OPEN_LIVE && !abandoned(c, word, slot))
			return false;
		close_call(c, word, slot, hooks);
	}
	set_top(top, c);
	return true;
}

struct pb_open_call *pb_open_at(struct pb_open_call **top, uint64_t slot, uint64_t ret,
				const struct pb_open_hooks *hooks)
{
	for (;;) {
		struct pb_open_call *c = close_above(*top, slot, false, hooks);
		int64_t word;

		if (!c)
			return NULL;
		word = read_word(c);
		if (pb_open_is_root(c) || word != (int64_t)slot) {
			set_top(top, c);
			return NULL;
		}
		if (c->ret == ret)
			return c;
		close_call(c, word, slot, hooks);
	}
}

struct pb_open_call *pb_open_exit(struct pb_open_call **top, uint64_t slot, uint64_t ret,
				  const struct pb_open_hooks *hooks)
{
	struct pb_open_call *c;

	do {
		c = pb_open_at(top, slot, ret, hooks);
		if (c)
			*(volatile uint8_t *)&c->record = PB_OPEN_UNRESERVED;
	} while (c && !swap(c, (int64_t)slot, (int64_t)(slot | LEAVING)));
	return c;
}

void pb_open_keep(struct pb_open_call *c, uint64_t slot)
{
	pb_barrier();
	swap(c, (int64_t)(slot | LEAVING), (int64_t)slot);
}

void pb_open_release(struct pb_open_call **top, struct pb_open_call *call)
{
	pb_barrier();
	*(volatile int64_t *)&call->word = PB_OPEN_FREE;
	set_top(top, pb_open_below(call));
}
