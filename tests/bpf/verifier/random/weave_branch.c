/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A part of the generator of weave.h. It makes branches. Most branches bound a number: one path
 * leaves the function, and on the other path the verifier knows more of the number. A number is
 * bounded directly, through a copy, or by another number.
 */
#include "weave_priv.h"

/* Makes a jump that leaves the function if the condition holds. At random, makes two jumps instead,
 * which leave the function if the condition doesn't hold: the first jump skips the second. */
static void leave_if(struct weave *w, unsigned code, int r, int src, int64_t imm)
{
	if (w->stay || chance(w, 60)) {
		put_out(w, code, r, src, imm);
		return;
	}
	put(w, code, r, src, 1, imm);
	put_out(w, BPF_JMP | BPF_JA, 0, 0, 0);
}

void weave_guard(struct weave *w)
{
	int r = weave_number(w);

	if (chance(w, 65)) {
		leave_if(w, jump_class(w) | jumps[pick(w, 11)] | BPF_K, r, 0, weave_imm(w));
	} else {
		int other = weave_number(w);

		if (other == r) {
			other = weave_free(w);
			weave_load_wide(w, other);
		}
		leave_if(w, jump_class(w) | jumps[pick(w, 11)] | BPF_X, r, other, 0);
	}
}

/* Makes a branch around some items (see weave_items()). The paths meet after the items. */
void weave_around(struct weave *w)
{
	int r = weave_number(w), other = weave_number(w), at, jump;
	uint32_t before, slots = w->slots;

	if (w->depth > 2)
		return;
	w->depth++;
	before = w->numbers;
	at = w->c->nr;
	if (chance(w, 70) || r == other)
		put(w, jump_class(w) | jumps[pick(w, 11)] | BPF_K, r, 0, 0, weave_imm(w));
	else
		put(w, jump_class(w) | jumps[pick(w, 11)] | BPF_X, r, other, 0, 0);
	weave_items(w, 1 + pick(w, 3));
	if (chance(w, 30)) {
		jump = w->c->nr;
		put(w, BPF_JMP | BPF_JA, 0, 0, 0, 0);
		w->c->insns[at].off = (int16_t)(w->c->nr - at - 1);
		w->numbers &= before;
		weave_items(w, 1 + pick(w, 2));
		w->c->insns[jump].off = (int16_t)(w->c->nr - jump - 1);
	} else {
		w->c->insns[at].off = (int16_t)(w->c->nr - at - 1);
	}
	w->numbers &= before;
	w->slots &= slots;
	w->depth--;
}

/* Makes a branch that compares r with k. If r is more than k (or at least k), the program sets r to
 * a constant, or keeps only its low five bits. */
static void clamp(struct weave *w, int r)
{
	int k = pick(w, 40);

	put(w, jump_class(w) | (chance(w, 50) ? BPF_JLE : BPF_JLT) | BPF_K, r, 0, 1, k);
	if (chance(w, 60))
		SET(r, pick(w, 40));
	else
		put(w, BPF_ALU64 | BPF_AND | BPF_K, r, 0, 0, 31);
}

static void bound_signed(struct weave *w, int r)
{
	unsigned class = jump_class(w);

	leave_if(w, class | (chance(w, 50) ? BPF_JSGT : BPF_JSGE) | BPF_K, r, 0, pick(w, 40));
	leave_if(w, class | (chance(w, 50) ? BPF_JSLT : BPF_JSLE) | BPF_K, r, 0,
		 chance(w, 50) ? 0 : -pick(w, 40));
	if (class == BPF_JMP)
		return;
	switch (pick(w, 4)) {
	case 0:
		put(w, BPF_ALU64 | BPF_MOV | BPF_X, r, r, 32, 0);
		break;
	case 1:
		put(w, BPF_ALU64 | BPF_LSH | BPF_K, r, 0, 0, 32);
		put(w, BPF_ALU64 | BPF_ARSH | BPF_K, r, 0, 0, 32);
		break;
	case 2:
		put(w, BPF_ALU | BPF_MOV | BPF_X, r, r, 0, 0);
		break;
	}
}

static void bound_unsigned(struct weave *w, int r)
{
	unsigned class = jump_class(w);

	leave_if(w, class | (chance(w, 50) ? BPF_JGT : BPF_JGE) | BPF_K, r, 0, 1 + pick(w, 48));
	if (class == BPF_JMP)
		return;
	if (chance(w, 60)) {
		put(w, BPF_ALU | BPF_MOV | BPF_X, r, r, 0, 0);
	} else {
		put(w, BPF_ALU64 | BPF_LSH | BPF_K, r, 0, 0, 32);
		put(w, BPF_ALU64 | BPF_RSH | BPF_K, r, 0, 0, 32);
	}
}

/* Bounds r through a copy. A constant may be added to the copy. */
static void bound_copy(struct weave *w, int r)
{
	int copy = weave_free(w), by = pick(w, 3) ? (int)weave_imm(w) % 64 : 0;

	if (copy == r)
		return;
	MOV(copy, r);
	w->numbers |= 1u << copy;
	if (by)
		put(w, (chance(w, 85) ? BPF_ALU64 : BPF_ALU) | BPF_ADD | BPF_K, copy, 0, 0, by);
	if (chance(w, 30) && by)
		ADD(r, (int)weave_imm(w) % 32);
	leave_if(w, jump_class(w) | (chance(w, 50) ? BPF_JGT : BPF_JGE) | BPF_K, copy, 0,
		 1 + pick(w, 48) + (by > 0 ? by : 0));
	if (chance(w, 40))
		leave_if(w, BPF_JMP | BPF_JSLT | BPF_K, chance(w, 50) ? r : copy, 0, pick(w, 16));
}

static void bound_register(struct weave *w, int r)
{
	int other = weave_free(w);

	if (other == r)
		return;
	weave_load(w, other);
	put(w, BPF_ALU64 | BPF_AND | BPF_K, other, 0, 0, (1 << pick(w, 6)) - 1 + pick(w, 2));
	leave_if(w, jump_class(w) | jumps[pick(w, 11)] | BPF_X, r, other, 0);
	if (chance(w, 50))
		leave_if(w, jump_class(w) | jumps[pick(w, 11)] | BPF_X, other, r, 0);
	if (chance(w, 50))
		leave_if(w, BPF_JMP | BPF_JSLT | BPF_K, r, 0, 0);
}

/* Bounds r to a few values. Each value has a separate path. */
static void bound_values(struct weave *w, int r)
{
	int n = 1 + pick(w, 3);

	for (int i = 0; i < n; i++)
		put(w, jump_class(w) | BPF_JEQ | BPF_K, r, 0, n - i, pick(w, 40));
	put_out(w, BPF_JMP | BPF_JA, r, 0, 0);
}

void weave_bound(struct weave *w, int r)
{
	switch (pick(w, 12)) {
	case 0:
		put(w, (chance(w, 50) ? BPF_ALU64 : BPF_ALU) | BPF_AND | BPF_K, r, 0, 0,
		    chance(w, 70) ? (1 << pick(w, 6)) - 1 : pick(w, 64));
		break;
	case 1: case 2:
		bound_unsigned(w, r);
		break;
	case 3: case 4:
		bound_signed(w, r);
		break;
	case 5:
		put(w, BPF_ALU64 | BPF_RSH | BPF_K, r, 0, 0, 58 + pick(w, 6));
		break;
	case 6:
		put(w, BPF_ALU64 | BPF_ARSH | BPF_K, r, 0, 0, 58 + pick(w, 6));
		break;
	case 7:
		leave_if(w, jump_class(w) | BPF_JSET | BPF_K, r, 0, ~((1 << pick(w, 6)) - 1));
		if (chance(w, 50))
			put(w, BPF_ALU | BPF_MOV | BPF_X, r, r, 0, 0);
		break;
	case 8:
		clamp(w, r);
		break;
	case 9:
		bound_copy(w, r);
		break;
	case 10:
		bound_register(w, r);
		break;
	default:
		bound_values(w, r);
	}
}
