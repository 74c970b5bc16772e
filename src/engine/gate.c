/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who owns which gates. A thread owns blocks of PB_GATES_PER_BLOCK; only it
 * (and its signal handlers) claims their entries, by a cmpxchg of the slot
 * word from 0. Any thread may free one, by storing 0: a coroutine may return
 * elsewhere than it was called.
 *
 * An entry is freed only when that is certain: its call returned, or its slot
 * no longer holds its gate. While a slot holds a gate, somebody may still
 * return through it, however deep the stack has sunk (coroutines).
 *
 * The block table is private memory that a child keeps; nr_blocks in t is
 * wiped with t, and recovered from the entries' owners.
 */
#include "engine/thread.h"

#define NR_BLOCKS	(PB_NR_GATES / PB_GATES_PER_BLOCK)
#define NONE		(-1)

static int32_t next_block[NR_BLOCKS];	/* of the same owner */
static uint32_t used_blocks;		/* handed out, ever */
static uint8_t block_taken[NR_BLOCKS];

static struct pb_entry *entry_at(uint32_t i)
{
	return (struct pb_entry *)(pb_entries + (uint64_t)i * 16);
}

static struct pb_entry *block_entry(int32_t block, uint32_t i)
{
	return entry_at((uint32_t)block * PB_GATES_PER_BLOCK + i);
}

static bool cmpxchg_slot(struct pb_entry *e, uint64_t old, uint64_t new)
{
	bool ok;

	__asm__ volatile("cmpxchgq %3, %1; sete %0"
			 : "=q"(ok), "+m"(PB_ENT_SLOT(e)), "+a"(old) : "r"(new) : "memory", "cc");
	return ok;
}

uint32_t pb_gates_used(void)
{
	return __atomic_load_n(&used_blocks, __ATOMIC_ACQUIRE) * PB_GATES_PER_BLOCK;
}

/* Nobody's: below the calls of stacks that found no entry of their own. */
#define spare_root entry_at(1)

static struct pb_entry *make_root(struct pb_entry *e, uint64_t hi)
{
	PB_ENT_SLOT(e) = hi;
	PB_ENT_PARENT(e) = e;
	PB_ENT_DEPTH(e) = 0;
	PB_ENT_SITE(e) = 0;
	PB_ENT_STATE(e) = PB_ENTRY_EMITTED;
	return e;
}

void pb_gates_start(void)
{
	block_taken[0] = 1;	/* so that no entry has the index 0 */
	used_blocks = 1;
	make_root(spare_root, PB_SLOT_GUARD);
}

struct pb_entry *pb_gate_root(struct pb_thread *t, uint64_t hi)
{
	struct pb_entry *e = pb_gate_claim(t, hi);

	return e ? make_root(e, hi) : spare_root;
}

/* Whether a return through gate e may still come: its slot holds the gate, or
 * another one whose call returns to it (a jump between functions that we took
 * for a call). */
static bool slot_leads_to(uint64_t slot, const struct pb_entry *e)
{
	uint64_t value = *(volatile uint64_t *)slot;

	for (int i = 0; i < 64 && pb_is_gate(value); i++) {
		const struct pb_entry *other = pb_entry_of(value);

		if (other == e)
			return true;
		if (PB_SLOT_ADDRESS(PB_ENT_SLOT(other)) != slot)
			return false;
		value = PB_ENT_RET(other);
	}
	return false;
}

/* A block for t, from those never used or given back. Lock-free between
 * threads; nested in itself it just takes two. */
static int32_t take_block(struct pb_thread *t)
{
	uint32_t used = __atomic_load_n(&used_blocks, __ATOMIC_RELAXED);

	for (uint32_t b = 1; b < NR_BLOCKS; b++) {
		uint8_t no = 0;

		if (b < used && block_taken[b])
			continue;
		if (!__atomic_compare_exchange_n(&block_taken[b], &no, 1, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		while (used <= b && !__atomic_compare_exchange_n(&used_blocks, &used, b + 1, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
		for (uint32_t i = 0; i < PB_GATES_PER_BLOCK; i++)
			PB_ENT_OWNER(block_entry((int32_t)b, i)) = t;
		PB_ENT_SLOT(block_entry((int32_t)b, PB_GATES_PER_BLOCK - 1)) = PB_SLOT_GUARD;
		do
			next_block[b] = t->first_block;
		while (!__atomic_compare_exchange_n(&t->first_block, &next_block[b], (int32_t)b,
						    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
		t->nr_blocks++;
		return (int32_t)b;
	}
	return NONE;
}

static struct pb_entry *claim_in(int32_t block, uint64_t slot)
{
	for (uint32_t i = 0; i < PB_GATES_PER_BLOCK - 1; i++) {
		struct pb_entry *e = block_entry(block, i);

		if (!PB_ENT_SLOT(e) && cmpxchg_slot(e, 0, slot))
			return e;
	}
	return NULL;
}

bool pb_gate_free_if_dead(struct pb_entry *e, bool readable)
{
	uint64_t word = PB_ENT_SLOT(e);

	if (PB_SLOT_IS_HOOK(word))
		return cmpxchg_slot(e, word, 0);
	if (!(word & PB_SLOT_LIVE) || word == PB_SLOT_GUARD || !readable)
		return false;
	if (slot_leads_to(PB_SLOT_ADDRESS(word), e))
		return false;
	return cmpxchg_slot(e, word, 0);
}

/* Slots are read on the thread's own stack only: what was written there once
 * stays mapped while the thread lives. */
static uint32_t collect(struct pb_thread *t)
{
	uint32_t freed = 0;

	for (int32_t b = t->first_block; b != NONE; b = next_block[b]) {
		for (uint32_t i = 0; i < PB_GATES_PER_BLOCK - 1; i++) {
			struct pb_entry *e = block_entry(b, i);
			uint64_t word = PB_ENT_SLOT(e);

			if (word && !PB_SLOT_IS_HOOK(word) && pb_gate_free_if_dead(e, pb_stack_holds(&t->own,
								PB_SLOT_ADDRESS(word))))
				freed++;
		}
	}
	return freed;
}

struct pb_entry *pb_gate_claim(struct pb_thread *t, uint64_t slot)
{
	struct pb_entry *e = t->hint;
	int32_t b;

	/* the hint's own block first, then the block before it in the list:
	 * deep recursion goes from block to block */
	if (e && PB_ENT_OWNER(e) == t) {
		b = (int32_t)(((uint64_t)e - (uint64_t)pb_entries) / 16 / PB_GATES_PER_BLOCK);
		e = claim_in(b, slot);
		if (e)
			return e;
	}
	if (t->collect_wait) {
		t->collect_wait--;
	} else {
		uint32_t tries = 0;

		for (b = t->first_block; b != NONE && tries < 8; b = next_block[b], tries++) {
			e = claim_in(b, slot);
			if (e)
				return e;
		}
	}
	b = take_block(t);
	if (b != NONE)
		return claim_in(b, slot);
	if (t->collect_wait)
		return NULL;
	if (!collect(t)) {
		t->collect_wait = t->nr_blocks * PB_GATES_PER_BLOCK;
		return NULL;
	}
	for (b = t->first_block; b != NONE; b = next_block[b]) {
		e = claim_in(b, slot);
		if (e)
			return e;
	}
	return NULL;
}

void pb_gates_abandon(struct pb_thread *t)
{
	for (int32_t b = t->first_block; b != NONE; b = next_block[b]) {
		for (uint32_t i = 0; i < PB_GATES_PER_BLOCK - 1; i++) {
			struct pb_entry *e = block_entry(b, i);
			uint64_t word = PB_ENT_SLOT(e);

			if (word && word != PB_SLOT_GUARD &&
			    (pb_stack_holds(&t->own, PB_SLOT_ADDRESS(word)) || e == t->own.root))
				PB_ENT_SLOT(e) = 0;
		}
	}
}

static bool block_idle(int32_t b)
{
	for (uint32_t i = 0; i < PB_GATES_PER_BLOCK - 1; i++)
		if (PB_ENT_SLOT(block_entry(b, i)))
			return false;
	return true;
}

/* Only the forking thread lives on; its entries keep the same owner (t's
 * address). What other threads had open may still be returned through, if it
 * stands on a coroutine's stack: those entries stay, their free blocks don't. */
struct pb_entry *pb_gates_after_fork(struct pb_thread *t, uint64_t slot)
{
	struct pb_entry *innermost = NULL;

	t->first_block = NONE;
	t->nr_blocks = 0;
	for (int32_t b = 1; b < (int32_t)used_blocks; b++) {
		if (!block_taken[b])
			continue;
		if (PB_ENT_OWNER(block_entry(b, 0)) != t) {
			block_taken[b] = !block_idle(b);
			continue;
		}
		next_block[b] = t->first_block;
		t->first_block = b;
		t->nr_blocks++;
		for (uint32_t i = 0; i < PB_GATES_PER_BLOCK - 1; i++) {
			struct pb_entry *e = block_entry(b, i);
			uint64_t word = PB_ENT_SLOT(e), at = PB_SLOT_ADDRESS(word);

			if (!pb_stack_holds(&t->own, at) || at < slot ||
			    !(PB_SLOT_IS_HOOK(word) ||
			      (word & PB_SLOT_LIVE && slot_leads_to(at, e))))
				continue;
			if (!innermost || word < PB_ENT_SLOT(innermost))
				innermost = e;
		}
	}
	return innermost;
}
