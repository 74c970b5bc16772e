/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A part of the generator of weave.h. It makes instructions that spill numbers to the stack,
 * overwrite parts of the spilled numbers, and fill registers. It also makes atomic instructions,
 * which change numbers in memory.
 */
#include "weave_priv.h"

/* Returns a register that points into the frame. *less gets the distance from the register's
 * address up to fp. */
static int stack_base(struct weave *w, int avoid, int *less)
{
	int r = weave_free(w);

	*less = 0;
	if (chance(w, 60) || r == avoid)
		return 10;
	*less = chance(w, 50) ? 0 : 8 * pick(w, 6);
	MOV(r, 10);
	if (*less)
		ADD(r, -*less);
	w->numbers &= ~(1u << r);
	return r;
}

static int width_of(int s)
{
	return 1 << s;
}

void weave_spill_fill(struct weave *w)
{
	int r = weave_number(w), slot = pick(w, SLOTS), s = chance(w, 40) ? 3 : pick(w, 4), less,
	    base = stack_base(w, r, &less);
	int at = -8 * (slot + 1) + (chance(w, 75) ? 0 : pick(w, 9 - width_of(s))), to;

	if (!(w->numbers >> r & 1))
		return;
	if (chance(w, 75))
		put(w, BPF_STX | BPF_MEM | sizes[s], base, r, at + less, 0);
	else
		put(w, BPF_ST | BPF_MEM | sizes[s], base, 0, at + less, weave_imm(w));
	w->slots |= (s == 3 && at == -8 * (slot + 1)) << slot;
	if (chance(w, 40))
		weave_bound(w, r);
	if (chance(w, 25) && (w->numbers >> r & 1)) {
		/* overwrites a part of the spilled number */
		int s2 = pick(w, 3);

		put(w, BPF_ST | BPF_MEM | sizes[s2], 10, 0,
		    -8 * (slot + 1) + pick(w, 9 - width_of(s2)), weave_imm(w));
	}
	to = weave_free(w);
	if (to == base)
		return;
	/* fills exactly the spilled bytes, or any bytes of the slot if the slot was written */
	if (chance(w, 60)) {
		put(w, BPF_LDX | (s < 3 && chance(w, 30) ? BPF_MEMSX : BPF_MEM) | sizes[s], to,
		    base, at + less, 0);
	} else if (w->slots >> slot & 1) {
		s = pick(w, 4);
		put(w, BPF_LDX | (s < 3 && chance(w, 30) ? BPF_MEMSX : BPF_MEM) | sizes[s], to,
		    chance(w, 50) ? 10 : base, 0, 0);
		w->c->insns[w->c->nr - 1].off =
			(int16_t)(-8 * (slot + 1) +
				  (chance(w, 60) ? 0 : pick(w, 9 - width_of(s))) +
				  (w->c->insns[w->c->nr - 1].src_reg == 10 ? 0 : less));
	} else {
		return;
	}
	w->numbers |= 1u << to;
}

void weave_atomic(struct weave *w)
{
	static const int ops[] = { BPF_ADD, BPF_AND, BPF_OR, BPF_XOR, BPF_ADD | BPF_FETCH,
				   BPF_AND | BPF_FETCH, BPF_OR | BPF_FETCH, BPF_XOR | BPF_FETCH,
				   BPF_XCHG, BPF_CMPXCHG };
	int r = weave_number(w), wide = pick(w, 2), slot = pick(w, SLOTS), op = ops[pick(w, 10)],
	    other = weave_number(w);

	if (op == BPF_CMPXCHG && !(w->numbers & 1))
		op = BPF_XCHG;
	if (op == BPF_CMPXCHG && r == 0)
		r = other;
	if (chance(w, 40)) {
		put(w, BPF_STX | BPF_ATOMIC | (wide ? BPF_DW : BPF_W), VALUE, r,
		    wide ? 8 * pick(w, 5) : 4 * pick(w, 10), op);
		return;
	}
	if (chance(w, 50) || !(w->slots >> slot & 1))
		put(w, BPF_STX | BPF_MEM | BPF_DW, 10, other, -8 * (slot + 1), 0);
	w->slots |= 1u << slot;
	put(w, BPF_STX | BPF_ATOMIC | (wide ? BPF_DW : BPF_W), 10, r,
	    -8 * (slot + 1) + (wide ? 0 : 4 * pick(w, 2)), op);
	if (chance(w, 50)) {
		int to = weave_free(w);

		put(w, BPF_LDX | BPF_MEM | BPF_DW, to, 10, -8 * (slot + 1), 0);
		w->numbers |= 1u << to;
	}
}
