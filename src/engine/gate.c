/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who owns which gates. A thread owns blocks of PB_GATES_PER_BLOCK; only it
 * (and its signal handlers) claims their entries, by a cmpxchg of the slot
 * word from 0. Any thread may free one, by storing 0, when the call returns: a
 * coroutine may return elsewhere than it was called. That a call is dead only
 * its entry's owner finds out (sweep.c): the entry can't be claimed anew then
 * between looking and freeing.
 *
 * An entry is freed only when that is certain: its call returned, or its slot
 * no longer holds its gate. While a slot holds a gate, somebody may still
 * return through it, however deep the stack has sunk (coroutines).
 *
 * The block table is private memory that a child keeps; nr_blocks in t is
 * wiped with t, and recovered from the entries' owners. There the thread that
 * forked takes over all blocks of former epochs.
 */
#include "engine/thread.h"

#define NR_BLOCKS	(PB_NR_GATES / PB_GATES_PER_BLOCK)

static int32_t next_block[NR_BLOCKS];	/* of the same owner */
static uint32_t used_blocks;		/* handed out, ever */
static uint32_t block_taken[NR_BLOCKS];	/* 0, or the epoch of the process in which it was taken */
static bool all_taken;			/* none is free, until some are given back */

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

	if (!e)
		e = pb_gate_claim_new(t, hi);
	for (int32_t b = t->first_block; !e && b != PB_NO_BLOCK; b = next_block[b])
		e = pb_gate_claim_in(b, hi);
	return e ? make_root(e, hi) : spare_root;
}

/* A return frees its entry before it gives the slot the address that the entry kept, which
 * may be another gate's: a program's at the same return. Who comes in between (a handler, or
 * another thread that sweeps) finds a gate in the slot whose entry is free, or claimed for
 * another call by now. Where the return goes then isn't known here. */
bool pb_gate_leads(uint64_t value, uint64_t slot, const struct pb_entry *e)
{
	for (int i = 0; i < 64 && pb_is_gate(value); i++) {
		const struct pb_entry *other = pb_entry_of(value);

		if (other == e || PB_SLOT_ADDRESS(PB_ENT_SLOT(other)) != slot)
			return true;
		value = PB_ENT_RET(other);
	}
	return false;
}

bool pb_gate_free(struct pb_entry *e, uint64_t word)
{
	return __atomic_compare_exchange_n(&PB_ENT_SLOT(e), &word, 0, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

static uint64_t missed;
uint64_t *pb_prog_missed = &missed;

void pb_gates_forget_progs(uint64_t *slot)
{
	while (pb_is_gate(*slot)) {
		struct pb_entry *e = pb_entry_of(*slot);

		if (PB_SLOT_ADDRESS(PB_ENT_SLOT(e)) != (uint64_t)slot || PB_ENT_STATE(e) != PB_ENTRY_PROG)
			return;
		*slot = PB_ENT_RET(e);
		pb_gate_free(e, (uint64_t)slot - 1);
		__atomic_add_fetch(pb_prog_missed, 1, __ATOMIC_RELAXED);
	}
}

/* A block for t, from those never used or given back. Lock-free between
 * threads; nested in itself it just takes two. */
static int32_t take_block(struct pb_thread *t)
{
	uint32_t used = __atomic_load_n(&used_blocks, __ATOMIC_RELAXED);

	for (uint32_t b = 1; !all_taken && b < NR_BLOCKS; b++) {
		uint32_t no = 0;

		if (b < used && block_taken[b])
			continue;
		if (!__atomic_compare_exchange_n(&block_taken[b], &no, pb_process->epoch, false,
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
	all_taken = true;
	return PB_NO_BLOCK;
}

struct pb_entry *pb_gate_claim_in(int32_t block, uint64_t slot)
{
	for (uint32_t i = 0; i < PB_GATES_PER_BLOCK - 1; i++) {
		struct pb_entry *e = block_entry(block, i);

		if (!PB_ENT_SLOT(e) && cmpxchg_slot(e, 0, slot))
			return e;
	}
	return NULL;
}

int32_t pb_gate_next_block(int32_t block)
{
	return next_block[block];
}

struct pb_entry *pb_gate_in_block(int32_t block, uint32_t i)
{
	return block_entry(block, i);
}

struct pb_entry *pb_gate_claim(struct pb_thread *t, uint64_t slot)
{
	struct pb_entry *e = t->hint;
	uint32_t tries = 0;
	int32_t b;

	/* the hint's own block first, then the latest: deep recursion goes from
	 * block to block */
	if (e && PB_ENT_OWNER(e) == t) {
		b = (int32_t)(((uint64_t)e - (uint64_t)pb_entries) / 16 / PB_GATES_PER_BLOCK);
		e = pb_gate_claim_in(b, slot);
		if (e)
			return e;
	}
	for (b = t->first_block; b != PB_NO_BLOCK && tries < 8; b = next_block[b], tries++) {
		e = pb_gate_claim_in(b, slot);
		if (e)
			return e;
	}
	return NULL;
}

struct pb_entry *pb_gate_claim_new(struct pb_thread *t, uint64_t slot)
{
	int32_t b = take_block(t);

	return b == PB_NO_BLOCK ? NULL : pb_gate_claim_in(b, slot);
}

void pb_gates_abandon(struct pb_thread *t)
{
	for (int32_t b = t->first_block; b != PB_NO_BLOCK; b = next_block[b]) {
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

static bool is_claimed(uint64_t word)
{
	return !(word & 7);
}

static bool is_root_of_stack(const struct pb_entry *e)
{
	return pb_is_root(e) && PB_ENT_PARENT(e) == e;
}

/* In a child. Stacks have new roots; what another thread was about to fill nobody goes on
 * with; and what stands on the own stack of another thread nobody returns through. What
 * stands elsewhere (coroutines) somebody may: it is t's now. A block that was just being taken has no
 * owner yet. */
static void inherit_block(struct pb_thread *t, int32_t b)
{
	const struct pb_thread *owner = PB_ENT_OWNER(block_entry(b, 0));
	struct pb_stack gone;
	bool known = owner && owner != t && pb_thread_own_bounds(owner, &gone);

	for (uint32_t i = 0; i < PB_GATES_PER_BLOCK - 1; i++) {
		struct pb_entry *e = block_entry(b, i);
		uint64_t word = PB_ENT_SLOT(e);

		PB_ENT_OWNER(e) = t;
		if (word && (is_root_of_stack(e) || (owner != t && is_claimed(word)) ||
			     (known && pb_stack_holds(&gone, PB_SLOT_ADDRESS(word)))))
			PB_ENT_SLOT(e) = 0;
		/* counted in the parent: here it is listed as open, and ends */
		if (PB_ENT_STATE(e) == PB_ENTRY_LEAF || PB_ENT_STATE(e) == PB_ENTRY_LATE)
			PB_ENT_STATE(e) = PB_ENTRY_EMITTED;
	}
}

static void take_over(struct pb_thread *t, int32_t b)
{
	PB_ENT_OWNER(block_entry(b, PB_GATES_PER_BLOCK - 1)) = t;
	next_block[b] = t->first_block;
	t->first_block = b;
	t->nr_blocks++;
}

void pb_gates_give_back(struct pb_thread *t)
{
	int32_t b = t->first_block, next;

	t->first_block = PB_NO_BLOCK;
	t->nr_blocks = 0;
	for (; b != PB_NO_BLOCK; b = next) {
		next = next_block[b];
		if (block_idle(b)) {
			__atomic_store_n(&block_taken[b], 0, __ATOMIC_RELEASE);
			all_taken = false;
		} else {
			take_over(t, b);
		}
	}
}

/* The innermost of t's open calls at or above the slot, on its own stack. */
static struct pb_entry *innermost_open(struct pb_thread *t, uint64_t slot)
{
	struct pb_entry *innermost = NULL;

	for (int32_t b = t->first_block; b != PB_NO_BLOCK; b = next_block[b]) {
		for (uint32_t i = 0; i < PB_GATES_PER_BLOCK - 1; i++) {
			struct pb_entry *e = block_entry(b, i);
			uint64_t word = PB_ENT_SLOT(e), at = PB_SLOT_ADDRESS(word);

			if (!pb_stack_holds(&t->own, at) || at < slot || !PB_ENT_SITE(e) ||
			    !(PB_SLOT_IS_HOOK(word) ||
			      (word & PB_SLOT_LIVE && pb_gate_leads(*(uint64_t *)at, at, e))))
				continue;
			if (!innermost || word < PB_ENT_SLOT(innermost))
				innermost = e;
		}
	}
	return innermost;
}

/* What hung below a root or a call that is gone hangs below t's root; so does what has no parent yet, as a
 * handler forked before that was written. */
static void hang_anew(struct pb_thread *t, struct pb_entry *root)
{
	for (int32_t b = t->first_block; b != PB_NO_BLOCK; b = next_block[b]) {
		for (uint32_t i = 0; i < PB_GATES_PER_BLOCK - 1; i++) {
			struct pb_entry *e = block_entry(b, i), *p = PB_ENT_PARENT(e);

			if (!PB_ENT_SLOT(e) || (p && PB_ENT_SLOT(p) && p != spare_root))
				continue;
			PB_ENT_PARENT(e) = root;
			if (PB_ENT_DEPTH(e) == PB_DEPTH_NEXT)
				PB_ENT_DEPTH(e) = PB_DEPTH_PARENT;
		}
	}
}

/* Only the forking thread lives on; its entries keep the same owner (t's
 * address), the others' become its own. */
struct pb_entry *pb_gates_after_fork(struct pb_thread *t, uint64_t slot)
{
	t->first_block = PB_NO_BLOCK;
	t->nr_blocks = 0;
	t->hint = NULL;
	all_taken = false;
	for (int32_t b = 1; b < (int32_t)used_blocks; b++) {
		/* other threads of this process may have taken some already */
		if (!block_taken[b] || (block_taken[b] == pb_process->epoch &&
					PB_ENT_OWNER(block_entry(b, 0)) != t))
			continue;
		inherit_block(t, b);
		block_taken[b] = block_idle(b) ? 0 : pb_process->epoch;
		if (block_taken[b])
			take_over(t, b);
	}
	t->own.root = pb_gate_root(t, t->own.hi);
	hang_anew(t, t->own.root);
	return innermost_open(t, slot);
}
