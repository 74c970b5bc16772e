/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A part of the generator of weave.h. It makes loops. Each loop ends by a counter, by may_goto, or
 * by an iterator of numbers.
 */
#include "bpf/helper/kfunc.h"
#include "weave_priv.h"

void weave_loop(struct weave *w)
{
	int counter = 6 + pick(w, 2), at;
	uint32_t before, slots = w->slots;

	if (w->depth || w->in_sub || w->locked >> counter & 1)
		return;
	SET(counter, pick(w, 4));
	w->locked |= 1u << counter;
	w->numbers &= ~(1u << counter);
	for (int r = 0; r < 8; r++)
		if (chance(w, 50))
			w->numbers &= ~(1u << r);
	before = w->numbers;
	at = w->c->nr;
	w->depth += 2;
	weave_items(w, 1 + pick(w, 2));
	w->depth -= 2;
	ADD(counter, 1);
	put(w, (chance(w, 70) ? BPF_JMP : BPF_JMP32) | (chance(w, 70) ? BPF_JLT : BPF_JNE) | BPF_K,
	    counter, 0, at - w->c->nr - 1, 4 + pick(w, 5));
	w->locked &= ~(1u << counter);
	w->numbers = (before & w->numbers) | 1u << counter;
	w->slots &= slots;
}

/* ---- loops with may_goto or an iterator ------------------------------------------------------ */

/* Makes the body of a loop. First forgets many registers, because earlier iterations may have
 * changed them. */
static void loop_body(struct weave *w, int head, int leave)
{
	uint32_t before, slots = w->slots;

	for (int r = 0; r < 8; r++)
		if (chance(w, 50))
			w->numbers &= ~(1u << r);
	before = w->numbers;
	w->depth += 2;
	weave_items(w, 1 + pick(w, 3));
	w->depth -= 2;
	if (chance(w, 60) && w->numbers) {
		/* makes a number that grows in each iteration, and a branch on this number */
		int r = weave_number(w);

		put(w, (chance(w, 80) ? BPF_ALU64 : BPF_ALU) | BPF_ADD | BPF_K, r, 0, 0,
		    1 + pick(w, 3));
		put(w, jump_class(w) | (chance(w, 50) ? BPF_JGT : BPF_JSGE) | BPF_K, r, 0, 1,
		    pick(w, 40));
	}
	put(w, BPF_JMP | BPF_JA, 0, 0, head - w->c->nr - 1, 0);
	w->c->insns[leave].off = (int16_t)(w->c->nr - leave - 1);
	w->numbers &= before;
	w->slots &= slots;
}

void weave_loop_may_goto(struct weave *w)
{
	int head = w->c->nr;

	if (w->depth)
		return;
	put(w, BPF_JMP | BPF_JCOND, 0, 0, 0, 0);
	loop_body(w, head, head);
}

static void call_iterator(struct weave *w, int function)
{
	MOV(1, 10);
	ADD(1, ITERATOR);
	if (function == PB_BPF_KFUNC_ITER_NUM_NEW) {
		SET(2, pick(w, 3));
		SET(3, pick(w, 12));
	}
	put(w, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, function);
	called(w, false);
}

void weave_loop_numbers(struct weave *w)
{
	int head, leave, r = weave_free(w);
	bool stay = w->stay;

	if (w->depth || w->in_sub)
		return;
	call_iterator(w, PB_BPF_KFUNC_ITER_NUM_NEW);
	head = w->c->nr;
	call_iterator(w, PB_BPF_KFUNC_ITER_NUM_NEXT);
	leave = w->c->nr;
	put(w, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0, 0);
	w->stay = true;
	if (chance(w, 75)) {
		put(w, BPF_LDX | (chance(w, 40) ? BPF_MEMSX : BPF_MEM) | BPF_W, r, 0, 0, 0);
		w->numbers |= 1u << r;
		if (chance(w, 50))
			weave_bound(w, r);
	}
	loop_body(w, head, leave);
	w->stay = stay;
	call_iterator(w, PB_BPF_KFUNC_ITER_NUM_DESTROY);
}
