/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A part of the generator of weave.h. It makes instructions on numbers, and assembles programs. */
#include <stddef.h>
#include <string.h>
#include "bpf/helper/kfunc.h"
#include "weave_priv.h"

int weave_free(struct weave *w)
{
	for (;;) {
		int r = pick(w, 8);

		if (!(w->locked >> r & 1))
			return r;
	}
}

int weave_number(struct weave *w)
{
	int start = pick(w, 8), r;

	for (int i = 0; i < 8; i++)
		if ((w->numbers & ~w->locked) >> (start + i) % 8 & 1)
			return (start + i) % 8;
	r = weave_free(w);
	weave_load(w, r);
	return r;
}

int64_t weave_imm(struct weave *w)
{
	static const int32_t edges[] = { 0, 1, -1, 2, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255,
					 256, 32767, 32768, 65535, 65536, INT32_MAX, INT32_MIN,
					 INT32_MIN + 1, -2, -8, -128, -32768, 0x40000000 };

	switch (pick(w, 8)) {
	case 0: case 1: case 2:
		return pick(w, 48);
	case 3:
		return -pick(w, 48);
	case 4: case 5:
		return edges[pick(w, sizeof edges / sizeof *edges)];
	case 6:
		return (int32_t)((1u << pick(w, 32)) + (unsigned)pick(w, 3) - 1);
	default:
		return (int32_t)weave_next(w);
	}
}

/* Loads a 64-bit constant. The upper half is an edge value. The lower half often is an edge value,
 * too. */
static void load_wide(struct weave *w, int r)
{
	static const uint32_t high[] = { 0, 0, 1, 0xffffffff, 0xffffffff, 0x7fffffff, 0x80000000 };

	put_load64(w, r, 0, weave_imm(w), (int32_t)high[pick(w, 7)]);
	w->numbers |= 1u << r;
}

/* Loads from base + off or a little after it. The memory at base + off has `left` bytes. */
static void load_from(struct weave *w, int r, int base, int off, int left)
{
	int s = pick(w, 4), bytes = 1 << s;

	while (bytes > left) {
		s--;
		bytes /= 2;
	}
	put(w, BPF_LDX | (s < 3 && chance(w, 35) ? BPF_MEMSX : BPF_MEM) | sizes[s], r, base,
	    off + (left > bytes ?
		   pick(w, left - bytes + 1) / (chance(w, 80) ? bytes : 1) *
		   (chance(w, 80) ? bytes : 1) : 0), 0);
	w->numbers |= 1u << r;
}

static void load_context(struct weave *w, int r)
{
	static const uint8_t skb[] = { offsetof(struct __sk_buff, len),
				       offsetof(struct __sk_buff, mark),
				       offsetof(struct __sk_buff, priority),
				       offsetof(struct __sk_buff, cb[0]),
				       offsetof(struct __sk_buff, cb[3]),
				       offsetof(struct __sk_buff, protocol) };

	if (w->type == BPF_PROG_TYPE_KPROBE)
		put(w, BPF_LDX | BPF_MEM | BPF_DW, r, CTX, 8 * pick(w, 20), 0);
	else if (w->type == BPF_PROG_TYPE_XDP)
		put(w, BPF_LDX | BPF_MEM | BPF_W, r, CTX, offsetof(struct xdp_md, ingress_ifindex),
		    0);
	else
		put(w, BPF_LDX | BPF_MEM | BPF_W, r, CTX, skb[pick(w, sizeof skb)], 0);
	w->numbers |= 1u << r;
}

void weave_load(struct weave *w, int r)
{
	if (chance(w, 15))
		load_wide(w, r);
	else if (chance(w, 10) && has_ctx(w))
		load_context(w, r);
	else
		load_from(w, r, VALUE, 0, GEN_DIRECT_VALUE);
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static void move(struct weave *w, int dst, int src)
{
	static const int widths[] = { 8, 16, 32 };
	int wide = pick(w, 2);

	switch (pick(w, 5)) {
	case 0:
		put(w, BPF_ALU | BPF_MOV | BPF_X, dst, src, 0, 0);
		break;
	case 1:
		put(w, (wide ? BPF_ALU64 : BPF_ALU) | BPF_MOV | BPF_X, dst, src,
		    widths[pick(w, wide ? 3 : 2)], 0);
		break;
	case 2:
		MOV(dst, src);
		put(w, (chance(w, 80) ? BPF_ALU64 : BPF_ALU) | BPF_ADD | BPF_K, dst, 0, 0,
		    weave_imm(w));
		break;
	default:
		MOV(dst, src);
	}
	w->numbers |= 1u << dst;
}

static void by_constant(struct weave *w, int r)
{
	static const uint8_t ops[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_OR, BPF_AND, BPF_LSH,
				       BPF_RSH, BPF_MOD, BPF_XOR, BPF_ARSH, BPF_AND, BPF_ADD };
	unsigned class = chance(w, 60) ? BPF_ALU64 : BPF_ALU, op = ops[pick(w, sizeof ops)];
	int64_t imm = weave_imm(w);

	if ((op == BPF_DIV || op == BPF_MOD) && !imm)
		imm = 3;
	if (op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH)
		imm &= class == BPF_ALU ? 31 : 63;
	put(w, class | op | BPF_K, r, 0, (op == BPF_DIV || op == BPF_MOD) && chance(w, 30), imm);
}

static void by_register(struct weave *w, int dst, int src)
{
	static const uint8_t ops[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_OR, BPF_AND, BPF_XOR, BPF_ADD,
				       BPF_SUB, BPF_LSH, BPF_RSH, BPF_ARSH, BPF_DIV, BPF_MOD };
	unsigned op = ops[pick(w, sizeof ops)];

	put(w, (chance(w, 60) ? BPF_ALU64 : BPF_ALU) | op | BPF_X, dst, src,
	    (op == BPF_DIV || op == BPF_MOD) && chance(w, 30), 0);
}

static void unary(struct weave *w, int r)
{
	static const int widths[] = { 16, 32, 64 };

	switch (pick(w, 4)) {
	case 0:
		put(w, BPF_ALU64 | BPF_NEG, r, 0, 0, 0);
		break;
	case 1:
		put(w, BPF_ALU | BPF_NEG, r, 0, 0, 0);
		break;
	case 2:
		put(w, BPF_ALU | BPF_END | (chance(w, 50) ? BPF_TO_BE : BPF_TO_LE), r, 0, 0,
		    widths[pick(w, 3)]);
		break;
	default:
		put(w, BPF_ALU64 | BPF_END, r, 0, 0, widths[pick(w, 3)]);
	}
}

static void compute(struct weave *w)
{
	int r = weave_number(w), other = weave_number(w), to;

	switch (pick(w, 10)) {
	case 0: case 1: case 2:
		by_constant(w, r);
		break;
	case 3: case 4: case 5:
		by_register(w, r, other);
		break;
	case 6:
		unary(w, r);
		break;
	default:
		to = weave_free(w);
		move(w, to, r);
	}
}

/* ---- branches -------------------------------------------------------------------------------- */

static const uint8_t jumps[] = { BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET, BPF_JNE, BPF_JSGT, BPF_JSGE,
				 BPF_JLT, BPF_JLE, BPF_JSLT, BPF_JSLE };

static unsigned jump_class(struct weave *w)
{
	return chance(w, 50) ? BPF_JMP : BPF_JMP32;
}

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

static void guard(struct weave *w)
{
	int r = weave_number(w);

	if (chance(w, 65)) {
		leave_if(w, jump_class(w) | jumps[pick(w, 11)] | BPF_K, r, 0, weave_imm(w));
	} else {
		int other = weave_number(w);

		if (other == r) {
			other = weave_free(w);
			load_wide(w, other);
		}
		leave_if(w, jump_class(w) | jumps[pick(w, 11)] | BPF_X, r, other, 0);
	}
}

/* Makes a branch around some items (see item()). The paths meet after the items. */
static void around(struct weave *w)
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

/* ---- the stack ------------------------------------------------------------------------------- */

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

static void spill_fill(struct weave *w)
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
	if (chance(w, 60)) {
		put(w, BPF_LDX | (s < 3 && chance(w, 30) ? BPF_MEMSX : BPF_MEM) | sizes[s], to,
		    base, at + less, 0);
	} else if (w->slots >> slot & 1) {
		s = pick(w, 4);
		put(w, BPF_LDX | (s < 3 && chance(w, 30) ? BPF_MEMSX : BPF_MEM) | sizes[s], to,
		    chance(w, 50) ? 10 : base, 0, 0);
		w->c->insns[w->c->nr - 1].off = (int16_t)(-8 * (slot + 1) +
							  (chance(w, 60) ? 0 :
							   pick(w, 9 - width_of(s))) +
			(w->c->insns[w->c->nr - 1].src_reg == 10 ? 0 : less));
	} else {
		return;
	}
	w->numbers |= 1u << to;
}

static void atomic(struct weave *w)
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

/* ---- calls, loops ---------------------------------------------------------------------------- */

static void arguments(struct weave *w, int a, int b)
{
	/* in this order, no register is overwritten before it is used */
	put(w, BPF_STX | BPF_MEM | BPF_DW, 10, a, KEY, 0);
	if (b >= 0)
		MOV(2, b);
	put(w, BPF_LDX | BPF_MEM | BPF_DW, 1, 10, KEY, 0);
}

static void call_numbers(struct weave *w)
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
static void call_stack(struct weave *w)
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
static void call_back(struct weave *w)
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

static void loop(struct weave *w)
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

static void loop_may_goto(struct weave *w)
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

static void loop_numbers(struct weave *w)
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

static void packet_load(struct weave *w)
{
	int src = weave_number(w);

	if (w->in_sub || w->stay ||
	    (w->type != BPF_PROG_TYPE_SOCKET_FILTER && w->type != BPF_PROG_TYPE_SCHED_CLS))
		return;
	if (w->locked & 0xc0)
		return;
	MOV(6, CTX);
	w->numbers &= ~(1u << 6);
	if (chance(w, 50) || src == 6)
		put(w, BPF_LD | BPF_ABS | sizes[pick(w, 3)], 0, 0, 0, pick(w, 20));
	else
		put(w, BPF_LD | BPF_IND | sizes[pick(w, 3)], 0, src, 0, pick(w, 8));
	called(w, true);
}

static void load(struct weave *w)
{
	weave_load(w, weave_free(w));
}

static void bound(struct weave *w)
{
	weave_bound(w, weave_number(w));
}

static void item(struct weave *w)
{
	static void (*const items[])(struct weave *) = {
		load, load, load, compute, compute, compute, compute, compute, guard, guard, guard,
		guard, bound, bound, bound, around, around, around, spill_fill, spill_fill,
		spill_fill, spill_fill, atomic, atomic, call_numbers, call_stack,
		call_back, loop, loop_may_goto, loop_numbers, packet_load,
	};

	items[pick(w, sizeof items / sizeof *items)](w);
}

void weave_items(struct weave *w, int n)
{
	for (int i = 0; i < n && w->c->nr < 240; i++)
		item(w);
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

static void make_sub(struct weave *w, int sub)
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

/* ---- the whole program ----------------------------------------------------------------------- */

static void begin(struct weave *w)
{
	MOV(CTX, 1);
	put_load64(w, VALUE, BPF_PSEUDO_MAP_VALUE, GEN_DIRECT, 0);
	for (int i = 0; i < SLOTS; i++)
		if (chance(w, 75)) {
			put(w, BPF_ST | BPF_MEM | BPF_DW, 10, 0, -8 * (i + 1),
			    chance(w, 50) ? 0 : weave_imm(w));
			w->slots |= 1u << i;
		}
	weave_load(w, 6 + pick(w, 2));
	weave_load(w, pick(w, 6));
}

/* Stores the program's numbers in a map. If two runs of the program compute different numbers, the
 * map's contents after these runs differ, too. */
static void give_out(struct weave *w)
{
	int at = 0;

	put_load64(w, CTX, BPF_PSEUDO_MAP_VALUE, GEN_OUT, 0);
	for (int r = 0; r < 8; r++)
		if (w->numbers >> r & 1)
			put(w, BPF_STX | BPF_MEM | BPF_DW, CTX, r, 8 * at++, 0);
	for (int i = 0; i < SLOTS; i++)
		if (w->slots >> i & 1 && chance(w, 60)) {
			put(w, BPF_LDX | BPF_MEM | BPF_DW, 1, 10, -8 * (i + 1), 0);
			put(w, BPF_STX | BPF_MEM | BPF_DW, CTX, 1, 8 * at++, 0);
			w->numbers &= ~2u;
		}
}

static void append(struct gen_program *p, const struct bpf_insn *insns, int nr)
{
	for (int i = 0; i < nr && p->nr < GEN_MOST - 2; i++)
		p->insns[p->nr++] = insns[i];
}

void weave_assemble(struct weave *w, struct gen_program *p)
{
	const struct bpf_insn exit[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT }
	};
	int starts[NR_SUBS] = { 0 };

	p->nr = 0;
	p->nr_funcs = 0;
	p->flags = w->flags;
	p->changed = false;
	p->type = w->type;
	append(p, w->body.insns, w->body.nr);
	append(p, exit, 2);
	for (int i = 0; i < w->body.nr_outs; i++)
		p->insns[w->body.outs[i]].off = (int16_t)(p->nr - w->body.outs[i] - 1);
	append(p, exit, 2);
	for (int i = 0; i < NR_SUBS; i++) {
		if (!w->wanted[i])
			continue;
		if (!p->nr_funcs)
			p->funcs[p->nr_funcs++] = (struct pb_bpf_func){ .insn = 0, .name = "main" };
		starts[i] = p->nr;
		p->funcs[p->nr_funcs++] = (struct pb_bpf_func){ .insn = (uint32_t)p->nr,
								.name = "sub" };
		append(p, w->subs[i].insns, w->subs[i].nr);
	}
	for (int i = 0; i < p->nr; i++) {
		struct bpf_insn *in = &p->insns[i];
		bool func = in->code == (BPF_LD | BPF_IMM | BPF_DW) &&
			    in->src_reg == BPF_PSEUDO_FUNC;

		if ((func || (in->code == (BPF_JMP | BPF_CALL) &&
			      in->src_reg == BPF_PSEUDO_CALL)) &&
		    in->imm < 0)
			in->imm = starts[-1 - in->imm] - i - 1;
	}
}

void weave(struct gen_program *p, uint64_t seed, weave_ask *ask)
{
	static const uint32_t types[] = { BPF_PROG_TYPE_SOCKET_FILTER, BPF_PROG_TYPE_XDP,
					  BPF_PROG_TYPE_XDP, BPF_PROG_TYPE_SCHED_CLS,
					  BPF_PROG_TYPE_SCHED_CLS, BPF_PROG_TYPE_KPROBE };
	static struct weave all;
	struct weave *w = &all;

	memset(w->wanted, 0, sizeof w->wanted);
	w->body.nr = w->body.nr_outs = 0;
	for (int i = 0; i < NR_SUBS; i++)
		w->subs[i].nr = w->subs[i].nr_outs = 0;
	w->seed = seed;
	w->numbers = w->locked = w->slots = 0;
	w->depth = 0;
	w->in_sub = w->stay = false;
	w->ask = ask;
	w->type = types[pick(w, 6)];
	w->flags = chance(w, 10) ? BPF_F_TEST_STATE_FREQ :
		   chance(w, 10) ? BPF_F_STRICT_ALIGNMENT : 0;
	for (int i = 0; i < NR_SUBS; i++)
		make_sub(w, i);
	begin(w);
	weave_items(w, 2 + pick(w, 9));
	for (int i = 1 + pick(w, 3); i; i--) {
		weave_edge(w);
		weave_items(w, pick(w, 3));
	}
	give_out(w);
	weave_assemble(w, p);
}

/* ---- changes --------------------------------------------------------------------------------- */

static void change_code(struct weave *w, struct bpf_insn *i)
{
	unsigned class = BPF_CLASS(i->code);

	switch (class) {
	case BPF_JMP: case BPF_JMP32:
		if (BPF_OP(i->code) == BPF_JA || BPF_OP(i->code) == BPF_CALL ||
		    BPF_OP(i->code) == BPF_EXIT)
			return;
		if (chance(w, 40))
			i->code ^= BPF_JMP ^ BPF_JMP32;
		else
			i->code = (uint8_t)((i->code & 15) | jumps[pick(w, 11)]);
		break;
	case BPF_ALU: case BPF_ALU64:
		if (BPF_OP(i->code) == BPF_END || BPF_OP(i->code) == BPF_NEG)
			return;
		if (chance(w, 60))
			i->code ^= BPF_ALU ^ BPF_ALU64;
		else
			i->code = (uint8_t)((i->code & 15) | (pick(w, 13) << 4));
		break;
	case BPF_LDX:
		if (chance(w, 40))
			i->code ^= BPF_MEM ^ BPF_MEMSX;
		else
			i->code = (uint8_t)((i->code & ~0x18) | sizes[pick(w, 4)]);
		break;
	case BPF_ST: case BPF_STX:
		i->code = (uint8_t)((i->code & ~0x18) | sizes[pick(w, 4)]);
		break;
	}
}

void weave_change(struct gen_program *p, uint64_t seed)
{
	struct weave all = { .seed = seed ^ 0x5bf0363546ull }, *w = &all;
	int at = pick(w, p->nr);
	struct bpf_insn *i = &p->insns[at];

	p->changed = true;
	if (i->code == (BPF_LD | BPF_IMM | BPF_DW) || !i->code)
		return;
	switch (pick(w, 10)) {
	case 0: case 1:
		i->imm += chance(w, 50) ? 1 : -1;
		break;
	case 2:
		if (BPF_CLASS(i->code) != BPF_JMP && BPF_CLASS(i->code) != BPF_JMP32)
			i->off = (int16_t)(i->off + (chance(w, 50) ? 1 : -1));
		else if (chance(w, 20))
			i->off = (int16_t)(i->off + pick(w, 5) - 2);
		break;
	case 3: case 4: case 5:
		change_code(w, i);
		break;
	case 6:
		if (i->code != (BPF_JMP | BPF_EXIT))
			*i = (struct bpf_insn){ .code = BPF_JMP | BPF_JA };
		break;
	case 7:
		i->dst_reg = (unsigned)pick(w, 11) & 15;
		break;
	case 8:
		i->src_reg = (unsigned)pick(w, 11) & 15;
		break;
	default:
		i->imm = (int32_t)weave_imm(w);
	}
}

int weave_words(const struct gen_program *p, uint64_t *words, int room)
{
	int n = 0;

	for (int i = 0; i < p->nr && n + 3 <= room; i++) {
		const struct bpf_insn *in = &p->insns[i];
		unsigned class = BPF_CLASS(in->code);
		uint64_t v = (uint64_t)(int64_t)in->imm;

		if (in->code == (BPF_LD | BPF_IMM | BPF_DW) && !in->src_reg) {
			v = (uint64_t)(uint32_t)in[1].imm << 32 | (uint32_t)in->imm;
			i++;
		} else if ((class != BPF_JMP && class != BPF_JMP32 && class != BPF_ALU &&
			    class != BPF_ALU64) ||
			   BPF_SRC(in->code) || BPF_OP(in->code) == BPF_JA ||
			   BPF_OP(in->code) == BPF_CALL) {
			continue;
		}
		words[n++] = v;
		words[n++] = v + 1;
		words[n++] = v - 1;
	}
	return n;
}
