/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The second generator's account of a program, and declarations for the generator's files. */
#ifndef PB_TEST_WEAVE_PRIV_H
#define PB_TEST_WEAVE_PRIV_H
#include "bpf/core/opcodes.h"
#include "random.h"
#include "weave.h"

#define VALUE	8		/* the register that always has the address of the direct map's
				 * value */
#define CTX	9		/* the register that has the context, up to the end of the program's
				 * body */
#define SLOTS	8		/* number of stack slots for numbers; each has eight bytes, the
				 * first is at fp - 8, the next ones below */
#define DYNPTR	(-80)		/* DYNPTR, KEY, BUFFER and ITERATOR are offsets from fp */
#define KEY	(-88)
#define BUFFER	(-128)
#define BUFFER_BYTES 32
#define ITERATOR (-136)
#define MOST_OUTS 96

enum weave_sub { SUB_NUMBERS, SUB_STACK, SUB_LOOP, SUB_EACH, NR_SUBS };

struct weave_code {
	struct bpf_insn insns[GEN_MOST];
	int nr, nr_outs, outs[MOST_OUTS];	/* outs: indices of the jumps to the end */
};

struct weave {
	struct weave_code *c, body, subs[NR_SUBS];
	bool wanted[NR_SUBS];
	uint64_t seed;
	uint32_t type, flags;
	/* bit n stands for register n, or for the stack slot at fp - 8(n + 1) */
	uint32_t numbers;	/* registers that hold a number */
	uint32_t locked;	/* registers that must not be written */
	uint32_t slots;		/* stack slots that have been written */
	int depth;
	bool in_sub;
	bool stay;		/* the program holds a reference, so the function can't be left at
				 * this point */
	weave_ask *ask;
};

static inline int pick(struct weave *w, int n)
{
	return (int)(next_random(&w->seed) % (uint64_t)n);
}

static inline bool chance(struct weave *w, int percent)
{
	return pick(w, 100) < percent;
}

static inline void put(struct weave *w, unsigned code, int dst, int src, int off, int64_t imm)
{
	struct weave_code *c = w->c;

	if (c->nr < GEN_MOST - 8)
		c->insns[c->nr++] = (struct bpf_insn){ .code = (uint8_t)code,
						       .dst_reg = (unsigned)dst & 15,
			.src_reg = (unsigned)src & 15, .off = (int16_t)off, .imm = (int32_t)imm };
}

/* Adds a jump to the function's end. The jump may be conditional. If the function can't be left at
 * this point, adds a substitute. */
static inline void put_out(struct weave *w, unsigned code, int dst, int src, int64_t imm)
{
	struct weave_code *c = w->c;

	if (w->stay) {
		/* the substitute: if the condition holds, dst is set to 4 */
		if (code != (BPF_JMP | BPF_JA)) {
			put(w, code, dst, src, 1, imm);
			put(w, BPF_JMP | BPF_JA, 0, 0, 1, 0);
		}
		put(w, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, 4);
		return;
	}
	if (c->nr_outs < MOST_OUTS && c->nr < GEN_MOST - 8)
		c->outs[c->nr_outs++] = c->nr;
	put(w, code, code == (BPF_JMP | BPF_JA) ? 0 : dst, src, 0, imm);
}

#define MOV(d, s)	put(w, BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define SET(d, v)	put(w, BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, v)
#define ADD(d, v)	put(w, BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, v)
#define CALL(fn)	put(w, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_##fn)

static inline void put_load64(struct weave *w, int dst, int src, int64_t imm, int64_t more)
{
	put(w, BPF_LD | BPF_IMM | BPF_DW, dst, src, 0, imm);
	put(w, 0, 0, 0, 0, more);
}

static inline void called(struct weave *w, bool r0_number)
{
	w->numbers &= ~0x3fu;
	w->numbers |= r0_number;
}

static const uint8_t sizes[] = { BPF_B, BPF_H, BPF_W, BPF_DW };

static const uint8_t jumps[] = { BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET, BPF_JNE, BPF_JSGT, BPF_JSGE,
				 BPF_JLT, BPF_JLE, BPF_JSLT, BPF_JSLE };

static inline unsigned jump_class(struct weave *w)
{
	return chance(w, 50) ? BPF_JMP : BPF_JMP32;
}

static inline bool has_packet(const struct weave *w)
{
	return !w->in_sub && (w->type == BPF_PROG_TYPE_XDP || w->type == BPF_PROG_TYPE_SCHED_CLS);
}

static inline bool has_ctx(const struct weave *w)
{
	return !w->in_sub;
}

/* weave_free() returns a register that may be written. weave_number() returns a register with a
 * number. If no register has a number, weave_number() first loads a number. */
int weave_free(struct weave *w);
int weave_number(struct weave *w);
int64_t weave_imm(struct weave *w);
/* Loads a new number into the register. weave_load_wide() loads a 64-bit constant. */
void weave_load(struct weave *w, int r);
void weave_load_wide(struct weave *w, int r);
/* Bounds the number in the register, in a random way. */
void weave_bound(struct weave *w, int r);
/* Adds n random items. */
void weave_items(struct weave *w, int n);
/* These functions add one item each. If an item isn't allowed at this point, its function adds
 * nothing. */
void weave_load_packet(struct weave *w);
void weave_compute(struct weave *w);
void weave_guard(struct weave *w);
void weave_around(struct weave *w);
void weave_spill_fill(struct weave *w);
void weave_atomic(struct weave *w);
void weave_call_numbers(struct weave *w);
void weave_call_stack(struct weave *w);
void weave_call_back(struct weave *w);
void weave_loop(struct weave *w);
void weave_loop_may_goto(struct weave *w);
void weave_loop_numbers(struct weave *w);
/* Makes the instructions of a subprogram. */
void weave_make_sub(struct weave *w, int sub);
/* Adds an access at the edge of a number's bounds. */
void weave_edge(struct weave *w);
/* Makes the program p from the current instructions, and adds an end after the body. */
void weave_assemble(struct weave *w, struct gen_program *p);
#endif
