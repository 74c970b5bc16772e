/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The generator's account of what registers and stack contain, and declarations for the generator's
 * two files. */
#ifndef PB_TEST_GENERATE_PRIV_H
#define PB_TEST_GENERATE_PRIV_H
#include "bpf/core/opcodes.h"
#include "generate.h"
#include "random.h"

/* What a register holds. NONE: nothing that the generator may use. SMALL: a number that was
 * bounded. VALUE: the address of a map's value. LOCKED: the counter of a loop. */
enum kind {
	NONE, NUMBER, SMALL, CTX, FP, PACKET, PACKET_END, VALUE_OR_NULL, VALUE, LOCKED, NR_KINDS
};

struct account {
	uint8_t kind[11];
	int16_t left[11];	/* for a VALUE: number of bytes up to the value's end; for a PACKET:
				 * number of bytes that are known to exist */
	uint64_t stack;		/* if bit n is set, the eight bytes at fp - 8(n + 1) have been
				 * written */
};

struct gen {
	struct gen_program *p;
	uint64_t seed;
	struct account a;
	int depth;
	int sub;		/* the subprogram that is now generated; 0: the main program */
	int starts[GEN_MOST_FUNCS];
	bool wanted[GEN_MOST_FUNCS];
};

static inline int pick(struct gen *g, int n)
{
	return (int)(next_random(&g->seed) % (uint64_t)n);
}

static inline bool chance(struct gen *g, int percent)
{
	return pick(g, 100) < percent;
}

static inline void put(struct gen *g, unsigned code, int dst, int src, int off, int imm)
{
	if (g->p->nr < GEN_MOST - 1)
		g->p->insns[g->p->nr++] = (struct bpf_insn){ .code = (uint8_t)code,
							     .dst_reg = (unsigned)dst & 15,
			.src_reg = (unsigned)src & 15, .off = (int16_t)off, .imm = imm };
}

static inline int32_t number(struct gen *g)
{
	static const int32_t edges[] = { 0, 1, -1, 2, 7, 8, 31, 32, 63, 64, 255, 256, 65535,
					 INT32_MAX, INT32_MIN };

	if (chance(g, 60))
		return pick(g, 64);
	return chance(g, 60) ? edges[pick(g, 15)] : (int32_t)next_random(&g->seed);
}

/* Returns a register of one of the kinds, or -1. Bit k of `kinds` stands for kind k. */
static inline int reg_of(struct gen *g, unsigned kinds)
{
	int start = pick(g, 11);

	for (int i = 0; i < 11; i++) {
		int r = (start + i) % 11;

		if (kinds >> g->a.kind[r] & 1)
			return r;
	}
	return -1;
}
#define NUMBERS (1u << NUMBER | 1u << SMALL)

static inline int any_dst(struct gen *g)
{
	return pick(g, 10);
}

static inline void set(struct gen *g, int r, enum kind kind)
{
	g->a.kind[r] = (uint8_t)kind;
	g->a.left[r] = 0;
}

static const uint8_t sizes[] = { BPF_B, BPF_H, BPF_W, BPF_DW };

/* Loads any number into r. */
void gen_number(struct gen *g, int r);
/* Returns a register with a number that is less than `below`. */
int gen_bounded(struct gen *g, int below);
void gen_block(struct gen *g, int items);
void gen_rare(struct gen *g);
/* Merges the accounts of two paths that meet. *a keeps what both accounts have in common. */
void gen_merge(struct account *a, const struct account *b);
/* Generates the subprograms that are called, in the order of their numbers. */
void gen_make_subs(struct gen *g);
void gen_link_subs(struct gen *g);
#endif
