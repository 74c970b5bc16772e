/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A part of the generator of weave.h. It makes instructions that load numbers into registers, and
 * that compute with these numbers. A number comes from memory or is a constant. Many constants are
 * the smallest or largest numbers of a width, for example 127, 128, 65535 or INT32_MIN.
 */
#include <stddef.h>
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
		return (int32_t)next_random(&w->seed);
	}
}

/* Loads a 64-bit constant. The upper half is an edge value. The lower half often is an edge value,
 * too. */
void weave_load_wide(struct weave *w, int r)
{
	static const uint32_t high[] = { 0, 0, 1, 0xffffffff, 0xffffffff, 0x7fffffff, 0x80000000 };

	put_load64(w, r, 0, weave_imm(w), (int32_t)high[pick(w, 7)]);
	w->numbers |= 1u << r;
}

/* Loads from a random address among the `left` bytes at base + off. */
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
		weave_load_wide(w, r);
	else if (chance(w, 10) && has_ctx(w))
		load_context(w, r);
	else
		load_from(w, r, VALUE, 0, GEN_DIRECT_VALUE);
}

void weave_load_packet(struct weave *w)
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

void weave_compute(struct weave *w)
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
