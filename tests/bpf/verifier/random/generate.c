/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Generates the usual parts of programs: numbers, calls, accesses, branches and loops.
 * generate_rare.c generates the other parts. */
#include <stddef.h>
#include <string.h>
#include "generate_priv.h"

const struct pb_bpf_map_attr gen_maps[GEN_MAPS] = {
	[GEN_HASH] = { BPF_MAP_TYPE_HASH, GEN_HASH_KEY, GEN_HASH_VALUE, GEN_ENTRIES, 0 },
	[GEN_ARRAY] = { BPF_MAP_TYPE_ARRAY, 4, GEN_ARRAY_VALUE, GEN_ENTRIES, 0 },
	[GEN_DIRECT] = { BPF_MAP_TYPE_ARRAY, 4, GEN_DIRECT_VALUE, 1, 0 },
	[GEN_PROGS] = { BPF_MAP_TYPE_PROG_ARRAY, 4, 4, GEN_ENTRIES, 0 },
	[GEN_OUT] = { BPF_MAP_TYPE_ARRAY, 4, GEN_OUT_VALUE, 1, 0 },
	[GEN_RING] = { BPF_MAP_TYPE_RINGBUF, 0, 0, GEN_RING_BYTES, 0 },
};

void gen_number(struct gen *g, int r)
{
	switch (pick(g, 3)) {
	case 0:
		put(g, BPF_LD | BPF_IMM | BPF_DW, r, 0, 0, number(g));
		put(g, 0, 0, 0, 0, chance(g, 70) ? 0 : number(g));
		break;
	case 1:
		put(g, BPF_ALU | BPF_MOV | BPF_K, r, 0, 0, number(g));
		break;
	default:
		put(g, BPF_ALU64 | BPF_MOV | BPF_K, r, 0, 0, number(g));
	}
	set(g, r, NUMBER);
}

static void arithmetic(struct gen *g)
{
	static const uint8_t ops[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_OR, BPF_AND, BPF_LSH,
				       BPF_RSH, BPF_MOD, BPF_XOR, BPF_ARSH };
	int dst = reg_of(g, NUMBERS), src = reg_of(g, NUMBERS);
	unsigned class = chance(g, 60) ? BPF_ALU64 : BPF_ALU, op = ops[pick(g, 11)];
	int imm = number(g);

	if (dst < 0)
		return;
	if ((op == BPF_DIV || op == BPF_MOD) && !imm)
		imm = 3;
	if (op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH)
		imm &= class == BPF_ALU ? 31 : 63;
	if (chance(g, 10))
		put(g, class | BPF_NEG, dst, 0, 0, 0);
	else if (chance(g, 50) && src >= 0)
		put(g, class | op | BPF_X, dst, src, 0, 0);
	else
		put(g, class | op | BPF_K, dst, 0, 0, imm);
	set(g, dst, NUMBER);
}

static void copy(struct gen *g)
{
	int dst = any_dst(g), src = pick(g, 11);

	if (g->a.kind[src] == NONE)
		return;
	put(g, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
	g->a.kind[dst] = g->a.kind[src];
	g->a.left[dst] = g->a.left[src];
	if (g->a.kind[src] == FP)
		set(g, dst, NONE);
}

/* Bounds a number by a branch or by a mask. The mask allows all numbers less than `below` only if
 * `below` is a power of two. */
int gen_bounded(struct gen *g, int below)
{
	int r = reg_of(g, NUMBERS);

	if (r < 0) {
		r = any_dst(g);
		gen_number(g, r);
	}
	if (chance(g, 70)) {
		put(g, BPF_ALU64 | BPF_AND | BPF_K, r, 0, 0, below - 1);
	} else {
		put(g, BPF_JMP | BPF_JLT | BPF_K, r, 0, 1, below);
		put(g, BPF_ALU64 | BPF_MOV | BPF_K, r, 0, 0, pick(g, below));
	}
	set(g, r, SMALL);
	return r;
}

static void stack(struct gen *g)
{
	int n = pick(g, 8), s = pick(g, 4), off = -8 * (n + 1), r;

	if (chance(g, 50) || !(g->a.stack >> n & 1)) {
		r = reg_of(g, ~(1u << NONE));
		if (chance(g, 70) && r >= 0)
			put(g, BPF_STX | BPF_MEM | BPF_DW, 10, r, off, 0);
		else if (chance(g, 70))
			put(g, BPF_ST | BPF_MEM | BPF_DW, 10, 0, off, number(g));
		else
			put(g, BPF_ST | BPF_MEM | sizes[s], 10, 0, off, number(g));
		g->a.stack |= 1ull << n;
		return;
	}
	r = any_dst(g);
	put(g, BPF_LDX | BPF_MEM | (chance(g, 70) ? BPF_DW : sizes[s]), r, 10, off, 0);
	set(g, r, chance(g, 50) ? NUMBER : NONE);
}

static void call_lookup(struct gen *g)
{
	int map = pick(g, GEN_DIRECT), keep = 6 + pick(g, 4);

	put(g, BPF_ST | BPF_MEM | BPF_DW, 10, 0, -8, pick(g, 6));
	g->a.stack |= 1;
	put(g, BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0);
	put(g, BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -8);
	put(g, BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_FD, 0, map);
	put(g, 0, 0, 0, 0, 0);
	put(g, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem);
	for (int r = 0; r < 6; r++)
		set(g, r, NONE);
	set(g, 0, VALUE_OR_NULL);
	if (chance(g, 90)) {
		if (chance(g, 50)) {
			put(g, BPF_JMP | BPF_JNE | BPF_K, 0, 0, 2, 0);
			put(g, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0);
			put(g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
		} else {
			put(g, BPF_JMP | BPF_JNE | BPF_K, 0, 0, 1, 0);
			put(g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
		}
		set(g, 0, VALUE);
		g->a.left[0] = map == GEN_HASH ? GEN_HASH_VALUE : GEN_ARRAY_VALUE;
	}
	if (chance(g, 70)) {
		put(g, BPF_ALU64 | BPF_MOV | BPF_X, keep, 0, 0, 0);
		g->a.kind[keep] = g->a.kind[0];
		g->a.left[keep] = g->a.left[0];
	}
}

static void call_other(struct gen *g)
{
	static const int calls[] = { BPF_FUNC_ktime_get_ns, BPF_FUNC_get_prandom_u32,
				     BPF_FUNC_get_smp_processor_id };

	put(g, BPF_JMP | BPF_CALL, 0, 0, 0, calls[pick(g, 3)]);
	for (int r = 0; r < 6; r++)
		set(g, r, NONE);
	set(g, 0, NUMBER);
}

static void access(struct gen *g)
{
	int base = reg_of(g, 1u << VALUE | 1u << PACKET), s = pick(g, 4),
	    bytes = 1 << (s == 3 ? 3 : s), left, r, off;

	if (base < 0)
		return;
	bytes = sizes[s] == BPF_B ? 1 : sizes[s] == BPF_H ? 2 : sizes[s] == BPF_W ? 4 : 8;
	left = g->a.left[base] - bytes;
	off = left > 0 ? pick(g, left + 1) : 0;
	if (chance(g, 70) && g->a.kind[base] == VALUE)
		off &= ~(bytes - 1);
	if (left >= 8 && chance(g, 30)) {
		int index = gen_bounded(g, 8);

		if (index == base)
			return;
		put(g, BPF_ALU64 | BPF_ADD | BPF_X, base, index, 0, 0);
		set(g, base, NONE);
		off = left > 8 ? pick(g, left - 7) : 0;
	}
	r = any_dst(g);
	if (chance(g, 50)) {
		put(g, BPF_LDX | BPF_MEM | sizes[s], r, base, off, 0);
		set(g, r, NUMBER);
	} else if (chance(g, 50)) {
		put(g, BPF_ST | BPF_MEM | sizes[s], base, 0, off, number(g));
	} else {
		r = reg_of(g, NUMBERS);
		if (r >= 0)
			put(g, BPF_STX | BPF_MEM | sizes[s], base, r, off, 0);
	}
}

static void atomic(struct gen *g)
{
	static const int ops[] = { BPF_ADD, BPF_AND, BPF_OR, BPF_XOR, BPF_ADD | BPF_FETCH,
				   BPF_AND | BPF_FETCH, BPF_OR | BPF_FETCH, BPF_XOR | BPF_FETCH,
				   BPF_XCHG };
	int base = reg_of(g, 1u << VALUE), r = reg_of(g, NUMBERS), wide = pick(g, 2);

	if (r < 0)
		return;
	if (base < 0 || g->a.left[base] < 8 || chance(g, 40)) {
		base = 10;
		put(g, BPF_ST | BPF_MEM | BPF_DW, 10, 0, -16, number(g));
		g->a.stack |= 2;
	}
	put(g, BPF_STX | BPF_ATOMIC | (wide ? BPF_DW : BPF_W), base, r, base == 10 ? -16 : 0,
	    ops[pick(g, 9)]);
}

static void context(struct gen *g)
{
	int c = reg_of(g, 1u << CTX), r = any_dst(g), packet = any_dst(g), end = any_dst(g),
	    bytes = 1 + pick(g, 32), p;

	if (c < 0)
		return;
	if (g->p->type == BPF_PROG_TYPE_SOCKET_FILTER || chance(g, 30)) {
		int off = g->p->type == BPF_PROG_TYPE_XDP ?
			  (int)offsetof(struct xdp_md, ingress_ifindex) :
			  g->p->type == BPF_PROG_TYPE_KPROBE ? 8 * pick(g, 20) : 4 * pick(g, 12);

		put(g, BPF_LDX | BPF_MEM | (g->p->type == BPF_PROG_TYPE_KPROBE ? BPF_DW : BPF_W), r,
		    c, off, 0);
		set(g, r, NUMBER);
		return;
	}
	if (g->p->type == BPF_PROG_TYPE_KPROBE || packet == end || c == packet || c == end)
		return;
	do
		p = any_dst(g);
	while (p == packet || p == end);
	put(g, BPF_LDX | BPF_MEM | BPF_W, packet, c, g->p->type == BPF_PROG_TYPE_XDP ?
	    (int)offsetof(struct xdp_md, data) : (int)offsetof(struct __sk_buff, data), 0);
	put(g, BPF_LDX | BPF_MEM | BPF_W, end, c, g->p->type == BPF_PROG_TYPE_XDP ?
	    (int)offsetof(struct xdp_md, data_end) : (int)offsetof(struct __sk_buff, data_end), 0);
	put(g, BPF_ALU64 | BPF_MOV | BPF_X, p, packet, 0, 0);
	put(g, BPF_ALU64 | BPF_ADD | BPF_K, p, 0, 0, bytes);
	if (chance(g, 50)) {
		put(g, BPF_JMP | BPF_JLE | BPF_X, p, end, 2, 0);
	} else {
		put(g, BPF_JMP | BPF_JGE | BPF_X, end, p, 2, 0);
	}
	put(g, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1);
	put(g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	set(g, p, NONE);
	set(g, end, PACKET_END);
	set(g, packet, PACKET);
	g->a.left[packet] = (int16_t)bytes;
}

void gen_merge(struct account *a, const struct account *b)
{
	for (int r = 0; r < 11; r++) {
		if (a->kind[r] != b->kind[r])
			a->kind[r] = NONE;
		if (a->left[r] > b->left[r])
			a->left[r] = b->left[r];
	}
	a->stack &= b->stack;
}

static void branch(struct gen *g)
{
	static const uint8_t ops[] = { BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET, BPF_JNE, BPF_JSGT,
				       BPF_JSGE, BPF_JLT, BPF_JLE, BPF_JSLT, BPF_JSLE };
	int dst = reg_of(g, NUMBERS), src = reg_of(g, NUMBERS), at;
	unsigned class = chance(g, 60) ? BPF_JMP : BPF_JMP32;
	struct account before;

	if (dst < 0 || g->depth > 3)
		return;
	at = g->p->nr;
	if (chance(g, 40))
		put(g, class | ops[pick(g, 11)] | BPF_X, dst, src, 0, 0);
	else
		put(g, class | ops[pick(g, 11)] | BPF_K, dst, 0, 0, number(g));
	before = g->a;
	g->depth++;
	gen_block(g, 1 + pick(g, 4));
	g->depth--;
	if (chance(g, 30)) {
		/* makes an else block; the first block ends with a jump over it */
		struct account then = g->a;
		int jump = g->p->nr;

		put(g, BPF_JMP | BPF_JA, 0, 0, 0, 0);
		g->p->insns[at].off = (int16_t)(g->p->nr - at - 1);
		g->a = before;
		g->depth++;
		gen_block(g, 1 + pick(g, 3));
		g->depth--;
		g->p->insns[jump].off = (int16_t)(g->p->nr - jump - 1);
		gen_merge(&g->a, &then);
		return;
	}
	g->p->insns[at].off = (int16_t)(g->p->nr - at - 1);
	gen_merge(&g->a, &before);
}

static void loop(struct gen *g)
{
	int counter = 6 + pick(g, 4), iterations = 1 + pick(g, 6), at;
	struct account before;

	if (g->depth > 1)
		return;
	put(g, BPF_ALU64 | BPF_MOV | BPF_K, counter, 0, 0, 0);
	set(g, counter, LOCKED);
	for (int r = 0; r < 10; r++)
		if (r != counter && g->a.kind[r] != CTX && chance(g, 70))
			set(g, r, NONE);
	before = g->a;
	at = g->p->nr;
	g->depth += 2;
	gen_block(g, 1 + pick(g, 3));
	g->depth -= 2;
	gen_merge(&g->a, &before);
	put(g, BPF_ALU64 | BPF_ADD | BPF_K, counter, 0, 0, 1);
	put(g, BPF_JMP | BPF_JLT | BPF_K, counter, 0, at - g->p->nr - 1, iterations);
	set(g, counter, NUMBER);
}

static void item(struct gen *g)
{
	int r;

	switch (pick(g, 26)) {
	case 20: case 21: case 22: case 23: case 24: case 25:
		gen_rare(g);
		break;
	case 0: case 1:
		r = any_dst(g);
		if (g->a.kind[r] != CTX || chance(g, 20))
			gen_number(g, r);
		break;
	case 2: case 3: case 4: case 5:
		arithmetic(g);
		break;
	case 6:
		copy(g);
		break;
	case 7: case 8:
		stack(g);
		break;
	case 9: case 10:
		call_lookup(g);
		break;
	case 11:
		call_other(g);
		break;
	case 12: case 13: case 14:
		access(g);
		break;
	case 15:
		atomic(g);
		break;
	case 16:
		context(g);
		break;
	case 17: case 18:
		branch(g);
		break;
	default:
		loop(g);
	}
}

void gen_block(struct gen *g, int items)
{
	for (int i = 0; i < items && g->p->nr < GEN_MOST - 160 + 30 * g->sub; i++)
		item(g);
}

static void change(struct gen *g)
{
	struct bpf_insn *i = &g->p->insns[pick(g, g->p->nr)];

	g->p->changed = true;
	switch (pick(g, 6)) {
	case 0:
		i->dst_reg = (unsigned)pick(g, 11) & 15;
		break;
	case 1:
		i->src_reg = (unsigned)pick(g, 11) & 15;
		break;
	case 2:
		i->off = (int16_t)(i->off + pick(g, 33) - 16);
		break;
	case 3:
		i->imm += pick(g, 33) - 16;
		break;
	case 4:
		i->imm = number(g);
		break;
	default:
		i->code = (uint8_t)(i->code ^ 1u << pick(g, 8));
	}
}

void generate(struct gen_program *p, uint64_t seed)
{
	static const uint32_t types[] = { BPF_PROG_TYPE_SOCKET_FILTER, BPF_PROG_TYPE_XDP,
					  BPF_PROG_TYPE_SCHED_CLS, BPF_PROG_TYPE_KPROBE };
	struct gen g = { .p = p, .seed = seed };

	p->nr = 0;
	p->nr_funcs = p->flags = 0;
	p->changed = false;
	p->type = types[pick(&g, 4)];
	set(&g, 1, CTX);
	set(&g, 10, FP);
	if (chance(&g, 80)) {
		put(&g, BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0);
		set(&g, 6, CTX);
	}
	for (int n = pick(&g, 4); n; n--)
		gen_number(&g, 2 + pick(&g, 4));
	gen_block(&g, 2 + pick(&g, 14));
	if (g.a.kind[0] != NUMBER)
		put(&g, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, pick(&g, 3));
	put(&g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	gen_make_subs(&g);
	gen_link_subs(&g);
	if (chance(&g, 40))
		for (int n = 1 + pick(&g, 2); n; n--)
			change(&g);
}
