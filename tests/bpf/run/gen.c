/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Generates the random programs that gen.h describes. */
#include <stdbool.h>
#include <string.h>
#include "gen.h"
#include "insns.h"
#include "random.h"

/*
 * A function is a sequence of statements. Each function first initializes its stack. Between two
 * statements, r6 is the address of the memory (gen.h), r7 is the packet's end, and the registers of
 * numbers[] hold numbers.
 */
#define MOST_SUBS	3
#define PKT		6
#define END		7
static const uint8_t numbers[] = { 0, 1, 2, 3, 4, 5, 8, 9 };

struct gen {
	uint64_t state;
	struct bpf_insn *insns;
	uint32_t nr;
	uint32_t budget;		/* how many statements may still follow */
	int sub, nr_subs;
	int slots;			/* 8-byte slots on this function's stack */
	uint16_t busy;			/* bit r: register r holds a counter, and statements
					 * must not change it */
	struct { uint32_t insn; int sub; } calls[256];
	uint32_t nr_calls;
	bool maps;
	uint8_t last;			/* the register that was changed last */
};

static uint64_t below(struct gen *g, uint64_t n)
{
	return next_random(&g->state) % n;
}

static bool one_in(struct gen *g, uint64_t n)
{
	return !below(g, n);
}

uint64_t gen_number(uint64_t *state)
{
	uint64_t r = next_random(state), v = next_random(state);

	switch (r % 8) {
	case 0:
		return v % 4;
	case 1:
		return -(v % 4);
	case 2:
		return 1ull << v % 64;
	case 3:
		return (1ull << v % 64) - 1;
	case 4:
		return (uint32_t)v;
	case 5:
		return (uint64_t)(int64_t)(int32_t)v;
	case 6:
		return v % 300;
	default:
		return v;
	}
}

void gen_memory(uint64_t *state, uint8_t *mem)
{
	for (int i = 0; i < GEN_MEMORY; i += 8) {
		uint64_t v = gen_number(state);

		memcpy(mem + i, &v, 8);
	}
}

static uint32_t put(struct gen *g, struct bpf_insn i)
{
	g->insns[g->nr] = i;
	return g->nr++;
}

static uint8_t any(struct gen *g)
{
	return numbers[below(g, sizeof(numbers))];
}

/* Chooses a register that the program may change. */
static uint8_t target(struct gen *g)
{
	uint8_t r = g->last;

	/* often choose the last register again, because engines fuse neighbouring instructions on
	 * one register */
	if (r != PKT && r != END && !(g->busy >> r & 1) && one_in(g, 3))
		return r;
	do
		r = any(g);
	while (g->busy >> r & 1);
	g->last = r;
	return r;
}

/* Chooses a register like target(), but no register whose bit is set in `others`. */
static uint8_t target_but(struct gen *g, unsigned others)
{
	uint8_t r;

	do
		r = target(g);
	while (others >> r & 1);
	return r;
}

static int32_t imm(struct gen *g)
{
	return (int32_t)gen_number(&g->state);
}

static uint8_t size(struct gen *g, int *bytes)
{
	static const uint8_t codes[] = { BPF_B, BPF_H, BPF_W, BPF_DW };
	unsigned k = (unsigned)below(g, 4);

	*bytes = 1 << k;
	return codes[k];
}

static void put_load64(struct gen *g, uint8_t dst, uint64_t v)
{
	put(g, I(BPF_LD | BPF_IMM | BPF_DW, dst, 0, 0, (uint32_t)v));
	put(g, I(0, 0, 0, 0, v >> 32));
}

/* ---- statements ------------------------------------------------------------------ */

static void arithmetic(struct gen *g)
{
	static const uint8_t ops[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_OR, BPF_AND, BPF_LSH,
		BPF_RSH, BPF_MOD, BPF_XOR, BPF_ARSH, BPF_MOV };
	uint8_t op = ops[below(g, sizeof(ops))], class = one_in(g, 2) ? BPF_ALU : BPF_ALU64;
	bool shift = op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH,
		divide = op == BPF_DIV || op == BPF_MOD;
	int16_t off = divide && one_in(g, 2);
	int32_t k = imm(g);

	if (one_in(g, 2)) {
		put(g, I(class | BPF_X | op, target(g), any(g), off, 0));
		return;
	}
	if (shift)
		k &= class == BPF_ALU ? 31 : 63;
	if (divide && !k)
		k = 1;
	put(g, I(class | BPF_K | op, target(g), 0, off, k));
}

static void unary(struct gen *g)
{
	static const int16_t widths[] = { 8, 16, 32 };
	static const uint8_t orders[] = {
		BPF_ALU | BPF_END | BPF_TO_LE, BPF_ALU | BPF_END | BPF_TO_BE,
		BPF_ALU64 | BPF_END | BPF_TO_LE };
	bool narrow = one_in(g, 2);

	switch (below(g, 4)) {
	case 0:
		put(g, I((narrow ? BPF_ALU : BPF_ALU64) | BPF_NEG, target(g), 0, 0, 0));
		break;
	case 1:
		put(g, I((narrow ? BPF_ALU : BPF_ALU64) | BPF_MOV | BPF_X, target(g), any(g),
			 widths[below(g, narrow ? 2 : 3)], 0));
		break;
	case 2:
		put(g, I(orders[below(g, 3)], target(g), 0, 0, 16 << below(g, 3)));
		break;
	default:
		put_load64(g, target(g), gen_number(&g->state));
	}
}

/* Makes a load or store of size `code` at address base + off. `but` is a register that the
 * instruction must neither load into nor store; 15 excludes no register. */
static void access_at(struct gen *g, uint8_t base, int16_t off, uint8_t code, uint8_t but)
{
	switch (below(g, 3)) {
	case 0:
		put(g, I(BPF_LDX | (code != BPF_DW && one_in(g, 3) ? 0x80 : BPF_MEM) | code,
			 target_but(g, 1u << but), base, off, 0));
		break;
	case 1:
		put(g, I(BPF_ST | BPF_MEM | code, base, 0, off, imm(g)));
		break;
	default:
		/* the source register holds a number, never an address */
		put(g, I(BPF_STX | BPF_MEM | code, base, target_but(g, 1u << but), off, 0));
	}
}

static void stack_access(struct gen *g)
{
	int bytes;
	uint8_t code = size(g, &bytes);
	int at = (int)below(g, (uint64_t)(g->slots * 8 / bytes)) * bytes;

	access_at(g, 10, (int16_t)(at - g->slots * 8), code, 15);
}

static void packet_access(struct gen *g)
{
	int bytes;
	uint8_t code = size(g, &bytes);

	access_at(g, PKT, (int16_t)below(g, (uint64_t)(GEN_MEMORY - bytes + 1)), code, 15);
}

/* Accesses the packet at an offset in a register. Before the access, the program checks that the
 * accessed bytes are inside the packet. */
static void packet_access_by_reg(struct gen *g)
{
	uint8_t p = target(g), e = target_but(g, 1u << p);
	int32_t mask = one_in(g, 2) ? 31 : 127;
	int16_t off;
	uint32_t skip;
	int bytes;
	uint8_t code = size(g, &bytes);

	off = (int16_t)below(g, 9);
	put(g, BPF_MOV64_REG(p, any(g)));
	put(g, BPF_ALU64_IMM(BPF_AND, p, mask));
	put(g, BPF_ALU64_REG(BPF_ADD, p, PKT));
	put(g, BPF_MOV64_REG(e, p));
	put(g, BPF_ALU64_IMM(BPF_ADD, e, off + bytes));
	skip = put(g, BPF_JMP_REG(BPF_JGT, e, END, 0));
	put(g, BPF_MOV64_IMM(e, imm(g)));
	access_at(g, p, off, code, p);
	g->insns[skip].off = (int16_t)(g->nr - skip - 1);
	put(g, BPF_MOV64_IMM(p, imm(g)));
	put(g, BPF_MOV64_IMM(e, imm(g)));
}

/* Loads from the stack at an offset in a register. Makes no store at such an offset: after such a
 * store, the verifier of Linux 6.18 may still rely on the old value of the stack slot. */
static void stack_load_by_reg(struct gen *g)
{
	uint8_t p = target(g);
	int mask = g->slots >= 16 ? 120 : g->slots >= 8 ? 56 : 24;
	int bytes;
	uint8_t code = size(g, &bytes);

	put(g, BPF_MOV64_REG(p, any(g)));
	put(g, BPF_ALU64_IMM(BPF_AND, p, mask));
	put(g, BPF_ALU64_REG(BPF_ADD, p, 10));
	put(g, BPF_LDX_MEM(code, p, p, (int16_t)(-8 * g->slots)));
}

static void atomic(struct gen *g)
{
	static const int32_t ops[] = { BPF_ADD, BPF_OR, BPF_AND, BPF_XOR, BPF_ADD | BPF_FETCH,
		BPF_OR | BPF_FETCH, BPF_AND | BPF_FETCH, BPF_XOR | BPF_FETCH, BPF_XCHG,
		BPF_CMPXCHG };
	int32_t op = ops[below(g, sizeof(ops) / sizeof(ops[0]))];
	bool wide = one_in(g, 2), by_reg = one_in(g, 2);
	int bytes = wide ? 8 : 4;
	int16_t off = (int16_t)((int)below(g, (uint64_t)(g->slots * 8 / bytes)) * bytes -
				g->slots * 8);
	uint8_t src = op == BPF_CMPXCHG ? any(g) : target(g), base = 10;

	if (op == BPF_CMPXCHG && g->busy & 1)
		return;
	if (by_reg) {
		base = target_but(g, 1u << src | (op == BPF_CMPXCHG));
		put(g, BPF_MOV64_REG(base, 10));
	}
	put(g, BPF_ATOMIC_OP(wide ? BPF_DW : BPF_W, op, base, src, off));
	if (by_reg)
		put(g, BPF_MOV64_IMM(base, imm(g)));
	/* after a 4-byte compare-and-exchange, Linux 6.18 doesn't always clear the upper half of
	 * r0, so the program clears it */
	if (op == BPF_CMPXCHG && !wide)
		put(g, BPF_ALU32_REG(BPF_MOV, 0, 0));
	/* The verifier of Linux 6.18 also loses the precision of a fetched value. As a result, it
	 * may remove branches that the program takes. So the program stores the value in the packet
	 * and loads it again. After that, the verifier knows nothing about the value. */
	if (op & BPF_FETCH) {
		src = op == BPF_CMPXCHG ? 0 : src;
		off = (int16_t)below(g, GEN_MEMORY - 7);
		put(g, BPF_STX_MEM(BPF_DW, PKT, src, off));
		put(g, BPF_LDX_MEM(BPF_DW, src, PKT, off));
	}
}

static void statements(struct gen *g, int depth);

static uint32_t put_condition(struct gen *g)
{
	static const uint8_t ops[] = { BPF_JEQ, BPF_JNE, BPF_JGT, BPF_JGE, BPF_JLT, BPF_JLE,
		BPF_JSET, BPF_JSGT, BPF_JSGE, BPF_JSLT, BPF_JSLE };
	uint8_t class = one_in(g, 2) ? BPF_JMP : BPF_JMP32, op = ops[below(g, sizeof(ops))];

	if (one_in(g, 2))
		return put(g, I(class | BPF_X | op, any(g), any(g), 0, 0));
	if (one_in(g, 3))
		return put(g, I(class | BPF_K | (one_in(g, 2) ? BPF_JEQ : BPF_JNE), g->last, 0, 0,
				0));
	return put(g, I(class | BPF_K | op, any(g), 0, 0, imm(g)));
}

static void branch(struct gen *g, int depth)
{
	uint32_t jump = put_condition(g), over;

	statements(g, depth + 1);
	if (one_in(g, 2)) {
		over = put(g, one_in(g, 2) ? BPF_JMP_A(0) : I(BPF_JMP32 | BPF_JA, 0, 0, 0, 0));
		g->insns[jump].off = (int16_t)(g->nr - jump - 1);
		statements(g, depth + 1);
		if (BPF_CLASS(g->insns[over].code) == BPF_JMP)
			g->insns[over].off = (int16_t)(g->nr - over - 1);
		else
			g->insns[over].imm = (int32_t)(g->nr - over - 1);
	} else {
		g->insns[jump].off = (int16_t)(g->nr - jump - 1);
	}
}

static void loop(struct gen *g, int depth)
{
	uint8_t counter = target(g);
	uint32_t from;

	if (__builtin_popcount(g->busy) > 2)
		return;
	put(g, BPF_MOV64_IMM(counter, (int32_t)below(g, 6) + 1));
	g->busy |= (uint16_t)(1u << counter);
	from = g->nr;
	statements(g, depth + 1);
	put(g, BPF_ALU64_IMM(BPF_ADD, counter, -1));
	put(g, BPF_JMP_IMM(BPF_JNE, counter, 0, (int16_t)(from - g->nr - 1)));
	g->busy &= (uint16_t)~(1u << counter);
}

/* Calls a subprogram. If a counter is in r0 to r5, does nothing, because a call would destroy the
 * counter. */
static void call(struct gen *g)
{
	if (g->sub >= g->nr_subs || g->busy & 0x3f ||
	    g->nr_calls == sizeof(g->calls) / sizeof(g->calls[0]))
		return;
	put(g, BPF_MOV64_REG(4, any(g)));
	put(g, BPF_MOV64_REG(5, any(g)));
	put(g, BPF_MOV64_REG(1, PKT));
	put(g, BPF_MOV64_REG(3, END));
	put(g, BPF_MOV64_REG(2, one_in(g, 2) ? 8 : 9));
	g->calls[g->nr_calls].sub = g->sub + 1 + (int)below(g, (uint64_t)(g->nr_subs - g->sub));
	g->calls[g->nr_calls++].insn = put(g, BPF_CALL_REL(0, 0));
	for (uint8_t r = 1; r <= 5; r++)
		put(g, one_in(g, 2) ? BPF_MOV64_REG(r, 0) :
		    BPF_LDX_MEM(BPF_DW, r, 10,
				(int16_t)(-8 * (1 + (int)below(g, (uint64_t)g->slots)))));
}

/* After a call of a helper, stores numbers in r1 to r5 again. */
static void put_numbers(struct gen *g)
{
	for (uint8_t r = 1; r <= 5; r++)
		put(g, one_in(g, 3) ? BPF_MOV64_REG(r, one_in(g, 2) ? 8 : 9) :
		    BPF_LDX_MEM(BPF_DW, r, 10,
				(int16_t)(-8 * (1 + (int)below(g, (uint64_t)g->slots)))));
}

/* sets r1 to the map, and r2 to the address of a key on the stack */
static void put_key(struct gen *g, enum gen_map map)
{
	uint8_t key = any(g);

	put(g, BPF_MOV64_REG(1, key));
	put(g, BPF_ALU64_IMM(BPF_AND, 1,
			     map == GEN_ARRAY ? 2 * GEN_ARRAY_ENTRIES - 1 : GEN_HASH_KEYS - 1));
	put(g, BPF_STX_MEM(BPF_W, 10, 1, -4));
	put(g, BPF_MOV64_REG(2, 10));
	put(g, BPF_ALU64_IMM(BPF_ADD, 2, -4));
	put(g, I(BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_FD, 0, map));
	put(g, I(0, 0, 0, 0, 0));
}

static void map_lookup(struct gen *g)
{
	enum gen_map map = one_in(g, 2) ? GEN_ARRAY : GEN_HASH;
	int room = map == GEN_ARRAY ? GEN_ARRAY_VALUE : GEN_HASH_VALUE, bytes;
	uint8_t code;
	uint32_t skip;

	put_key(g, map);
	put(g, BPF_CALL_FN(BPF_FUNC_map_lookup_elem));
	put_numbers(g);
	skip = put(g, BPF_JMP_IMM(BPF_JEQ, 0, 0, 0));
	for (uint64_t n = 1 + below(g, 3); n--;) {
		code = size(g, &bytes);
		if (one_in(g, 4)) {
			bool wide = one_in(g, 2);

			put(g, BPF_ATOMIC_OP(wide ? BPF_DW : BPF_W,
					     one_in(g, 2) ? BPF_ADD : BPF_XOR, 0, target_but(g, 1),
					     (int16_t)(below(g, (uint64_t)room / 8) * 8)));
		} else {
			access_at(g, 0, (int16_t)below(g, (uint64_t)(room - bytes + 1)), code, 0);
		}
	}
	g->insns[skip].off = (int16_t)(g->nr - skip - 1);
	put(g, BPF_MOV64_IMM(0, imm(g)));
}

static void map_change(struct gen *g)
{
	enum gen_map map = one_in(g, 3) ? GEN_ARRAY : GEN_HASH;
	bool remove = one_in(g, 3);

	put_key(g, map);
	if (!remove) {
		put(g, BPF_MOV64_REG(3, 10));
		put(g, BPF_ALU64_IMM(BPF_ADD, 3, -8 * g->slots));
		put(g, BPF_MOV64_IMM(4, (int32_t)below(g, 4)));
	}
	put(g, BPF_CALL_FN(remove ? BPF_FUNC_map_delete_elem : BPF_FUNC_map_update_elem));
	put_numbers(g);
}

static void map_access(struct gen *g)
{
	/* a counter in r0 to r5 doesn't survive a call */
	if (!g->maps || g->busy & 0x3f)
		return;
	if (one_in(g, 2))
		map_lookup(g);
	else
		map_change(g);
}

static void statement(struct gen *g, int depth)
{
	uint64_t k = below(g, 100);

	if (k < 45)
		arithmetic(g);
	else if (k < 55)
		unary(g);
	else if (k < 63)
		stack_access(g);
	else if (k < 70)
		packet_access(g);
	else if (k < 75)
		packet_access_by_reg(g);
	else if (k < 78)
		stack_load_by_reg(g);
	else if (k < 85)
		atomic(g);
	else if (k < 88)
		call(g);
	else if (k < 91)
		map_access(g);
	else if (k < 96 && depth < 4)
		branch(g, depth);
	else if (depth < 3)
		loop(g, depth);
}

static void statements(struct gen *g, int depth)
{
	uint64_t n = 1 + below(g, depth ? 8 : 30);

	while (n-- && g->budget) {
		g->budget--;
		statement(g, depth);
	}
}

/* ---- functions ---------------------------------------------------------------------- */

static void function(struct gen *g)
{
	bool main = !g->sub;

	g->slots = 4 << below(g, main ? 3 : 2);
	g->busy = 0;
	put(g, BPF_MOV64_REG(PKT, 1));
	put(g, BPF_MOV64_REG(END, 3));
	for (size_t k = 0; k < sizeof(numbers); k++) {
		uint8_t r = numbers[k];

		if (!main && (r == 2 || r == 4 || r == 5))
			continue;	/* the subprogram's arguments */
		if (one_in(g, 4))
			put(g, BPF_MOV64_IMM(r, imm(g)));
		else
			put(g, BPF_LDX_MEM(BPF_DW, r, PKT, (int16_t)below(g, GEN_MEMORY - 7)));
	}
	for (int s = 1; s <= g->slots; s++)
		put(g, one_in(g, 2) ? BPF_STX_MEM(BPF_DW, 10, any(g), (int16_t)(-8 * s)) :
		    BPF_ST_MEM(BPF_DW, 10, (int16_t)(-8 * s), imm(g)));
	statements(g, 0);
	for (size_t k = 1; k < sizeof(numbers); k++) {
		put(g, BPF_ALU64_IMM(BPF_MUL, 0, 31));
		put(g, BPF_ALU64_REG(BPF_ADD, 0, numbers[k]));
	}
	for (int s = 1; s <= g->slots; s++) {
		put(g, BPF_LDX_MEM(BPF_DW, 1, 10, (int16_t)(-8 * s)));
		put(g, BPF_ALU64_IMM(BPF_MUL, 0, 31));
		put(g, BPF_ALU64_REG(BPF_ADD, 0, 1));
	}
	put(g, BPF_EXIT_INSN());
}

uint32_t gen_program(uint64_t seed, bool maps, struct bpf_insn *insns)
{
	struct gen g = { .state = seed, .insns = insns, .maps = maps };
	uint32_t starts[MOST_SUBS + 1];
	bool used[MOST_SUBS + 1] = { true };

	g.nr_subs = one_in(&g, 3) ? (int)below(&g, MOST_SUBS) + 1 : 0;
	for (g.sub = 0; g.sub <= g.nr_subs; g.sub++) {
		/* if no call has the function as its target, the function isn't generated */
		for (uint32_t c = 0; c < g.nr_calls; c++)
			used[g.calls[c].sub] = true;
		if (!used[g.sub])
			continue;
		starts[g.sub] = g.nr;
		g.budget = g.sub ? 25 : 80;
		function(&g);
	}
	for (uint32_t c = 0; c < g.nr_calls; c++)
		insns[g.calls[c].insn].imm =
			(int32_t)(starts[g.calls[c].sub] - g.calls[c].insn - 1);
	return g.nr;
}
