/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A part of the generator of weave.h. It makes calls of subprograms and callbacks, and the
 * subprograms themselves. Caller and subprogram exchange numbers as arguments, as the result, or in
 * a slot of the caller's stack.
 */
#include "weave_priv.h"

static void arguments(struct weave *w, int a, int b)
{
	/* because of this order, no register is overwritten before it is used */
	put(w, BPF_STX | BPF_MEM | BPF_DW, 10, a, KEY, 0);
	if (b >= 0)
		MOV(2, b);
	put(w, BPF_LDX | BPF_MEM | BPF_DW, 1, 10, KEY, 0);
}

void weave_call_numbers(struct weave *w)
{
	int a = weave_number(w), b = weave_number(w);

	if (w->in_sub)
		return;
	if (chance(w, 50))
		weave_bound(w, a);
	arguments(w, a, b);
	put(w, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, -1 - SUB_NUMBERS);
	w->wanted[SUB_NUMBERS] = true;
	called(w, true);
}

/* Calls a subprogram with the address of a slot of the caller's stack. */
void weave_call_stack(struct weave *w)
{
	int a = weave_number(w), slot = pick(w, SLOTS), to;

	if (w->in_sub)
		return;
	MOV(2, a);
	put(w, BPF_STX | BPF_MEM | BPF_DW, 10, 2, -8 * (slot + 1), 0);
	MOV(1, 10);
	ADD(1, -8 * (slot + 1));
	put(w, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, -1 - SUB_STACK);
	w->wanted[SUB_STACK] = true;
	w->slots |= 1u << slot;
	called(w, true);
	to = weave_free(w);
	put(w, BPF_LDX | BPF_MEM | BPF_DW, to, 10, -8 * (slot + 1), 0);
	w->numbers |= 1u << to;
}

/* Calls bpf_loop or bpf_for_each_map_elem. The callback gets the address of a slot of its caller's
 * stack. */
void weave_call_back(struct weave *w)
{
	int slot = pick(w, SLOTS), sub = chance(w, 60) ? SUB_LOOP : SUB_EACH,
	    n = weave_number(w), to;

	if (w->in_sub || w->depth > 1)
		return;
	put(w, BPF_ST | BPF_MEM | BPF_DW, 10, 0, -8 * (slot + 1), pick(w, 8));
	if (sub == SUB_EACH) {
		put_load64(w, 1, BPF_PSEUDO_MAP_FD, chance(w, 70) ? GEN_ARRAY : GEN_DIRECT, 0);
	} else if (chance(w, 50)) {
		SET(1, pick(w, 6));
	} else {
		MOV(1, n);
		put(w, BPF_ALU64 | BPF_AND | BPF_K, 1, 0, 0, 7);
	}
	put_load64(w, 2, BPF_PSEUDO_FUNC, -1 - sub, 0);
	MOV(3, 10);
	ADD(3, -8 * (slot + 1));
	SET(4, 0);
	if (sub == SUB_LOOP)
		CALL(loop);
	else
		CALL(for_each_map_elem);
	w->wanted[sub] = true;
	w->slots |= 1u << slot;
	called(w, true);
	to = 1 + pick(w, 5);
	put(w, BPF_LDX | BPF_MEM | BPF_DW, to, 10, -8 * (slot + 1), 0);
	w->numbers |= 1u << to;
}

/* ---- subprograms ----------------------------------------------------------------------------- */

static void end_sub(struct weave *w, int r0_most)
{
	struct weave_code *c = w->c;

	if (r0_most)
		SET(0, pick(w, r0_most));
	else if (!(w->numbers & 1))
		MOV(0, weave_number(w));
	put(w, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	for (int i = 0; i < c->nr_outs; i++)
		c->insns[c->outs[i]].off = (int16_t)(c->nr - c->outs[i] - 1);
	SET(0, r0_most ? pick(w, r0_most) : weave_imm(w));
	put(w, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* Makes a callback's or subprogram's instructions that use a slot of its caller's stack. r has the
 * slot's address. */
static void use_slot(struct weave *w, int r)
{
	int to = 4 + pick(w, 2);

	put(w, BPF_LDX | BPF_MEM | (chance(w, 80) ? BPF_DW : BPF_W), to, r, 0, 0);
	w->numbers |= 1u << to;
	w->locked |= 1u << r;
	switch (pick(w, 3)) {
	case 0:
		ADD(to, pick(w, 4));
		break;
	case 1:
		weave_bound(w, to);
		break;
	}
	weave_items(w, pick(w, 3));
	put(w, BPF_STX | BPF_MEM | (chance(w, 85) ? BPF_DW : BPF_W), r, weave_number(w), 0, 0);
	w->locked &= ~(1u << r);
}

void weave_make_sub(struct weave *w, int sub)
{
	uint32_t numbers = w->numbers, locked = w->locked, slots = w->slots;

	w->c = &w->subs[sub];
	w->in_sub = true;
	w->numbers = w->slots = w->locked = 0;
	put_load64(w, VALUE, BPF_PSEUDO_MAP_VALUE, GEN_DIRECT, 0);
	switch (sub) {
	case SUB_NUMBERS:
		w->numbers = 6;
		weave_items(w, 1 + pick(w, 5));
		end_sub(w, 0);
		break;
	case SUB_STACK:
		w->numbers = 4;
		use_slot(w, 1);
		end_sub(w, 0);
		break;
	case SUB_LOOP:
		w->numbers = 2;
		use_slot(w, 2);
		end_sub(w, chance(w, 70) ? 1 : 2);
		break;
	default:
		/* arguments: r1 is the map; r2, r3 and r4 are the addresses of key, value and
		 * slot */
		MOV(6, 3);
		MOV(7, 4);
		w->locked = 0xc0;
		put(w, BPF_LDX | BPF_MEM | BPF_W, 5, 2, 0, 0);
		w->numbers = 0x20;
		if (chance(w, 60)) {
			put(w, BPF_LDX | BPF_MEM | BPF_DW, 3, 6, 8 * pick(w, 5), 0);
			w->numbers |= 8;
			weave_bound(w, 3);
		}
		use_slot(w, 7);
		end_sub(w, chance(w, 70) ? 1 : 2);
	}
	w->c = &w->body;
	w->in_sub = false;
	w->numbers = numbers;
	w->locked = locked;
	w->slots = slots;
}
