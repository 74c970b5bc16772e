/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The interpreter. Each operation has a label. Some pairs of instructions run as one operation
 * (PAIRS below), and each such pair has a label, too. The code of a label ends with a jump through
 * the table of labels. The interpreter itself checks nothing, because the verifier has checked the
 * program.
 *
 * In the interpreter a subprogram's address is a token: a number that is no valid address. Each
 * callback runs in its own call of interpret(). If a subprogram makes a tail call, interpret()
 * calls the target like a function, because the subprogram's caller continues afterwards. If the
 * main program makes a tail call to a program without native code, the target replaces the program
 * in the same call of interpret().
 */
#include "base/base.h"
#include "bpf/core/probe.h"
#include "bpf/core/program.h"

#define TOKEN		(1ull << 63)	/* a token is TOKEN | the number of the subprogram's first
					 * instruction */

struct frame {
	const struct pb_bpf_code *back;
	uint64_t callee_saved[4], fp;
};

#define DST	(*(uint64_t *)((char *)r + i->dst))
#define SRC	(*(uint64_t *)((char *)r + i->src))
#define IMM	((uint64_t)i->imm)
#define NEXT	do { i++; goto *labels[i->op]; } while (0)
#define GO(by)	do { i += (by); NEXT; } while (0)

#define ALU(NAME, expr64, expr32) \
	NAME##64_K: { uint64_t d = DST, s = IMM; DST = (expr64); NEXT; } \
	NAME##64_X: { uint64_t d = DST, s = SRC; DST = (expr64); NEXT; } \
	NAME##32_K: { uint32_t d = (uint32_t)DST, s = (uint32_t)i->imm; \
		DST = (uint32_t)(expr32); NEXT; } \
	NAME##32_X: { uint32_t d = (uint32_t)DST, s = (uint32_t)SRC; \
		DST = (uint32_t)(expr32); NEXT; }

#define IF(NAME, type64, type32, cond) \
	NAME##64_K: { type64 d = (type64)DST, s = (type64)IMM; GO((cond) ? i->off : 0); } \
	NAME##64_X: { type64 d = (type64)DST, s = (type64)SRC; GO((cond) ? i->off : 0); } \
	NAME##32_K: { type32 d = (type32)DST, s = (type32)i->imm; GO((cond) ? i->off : 0); } \
	NAME##32_X: { type32 d = (type32)DST, s = (type32)SRC; GO((cond) ? i->off : 0); }

/* An unaligned access, of any type. */
#define UNALIGNED(type, addr) (((struct { type v; } __attribute__((packed, may_alias)) *)(addr))->v)

#define SIZES(X) X(B, uint8_t, int8_t) X(H, uint16_t, int16_t) X(W, uint32_t, int32_t)
#define MEMORY(S, type, sx) \
	LDX_##S: DST = UNALIGNED(type, SRC + (uint64_t)(int64_t)i->off); NEXT; \
	ST_##S: UNALIGNED(type, DST + (uint64_t)(int64_t)i->off) = (type)i->imm; NEXT; \
	STX_##S: UNALIGNED(type, DST + (uint64_t)(int64_t)i->off) = (type)SRC; NEXT;
#define SIGNED(S, type, sx) \
	LDSX_##S: DST = (uint64_t)(int64_t)UNALIGNED(sx, SRC + (uint64_t)(int64_t)i->off); NEXT; \
	PROBE_S##S: DST = \
		(uint64_t)(int64_t)(sx)pb_bpf_probe_##S(SRC + (uint64_t)(int64_t)i->off); NEXT; \
	PROBE_##S: DST = pb_bpf_probe_##S(SRC + (uint64_t)(int64_t)i->off); NEXT;

#define AT(type) ((type *)(DST + (uint64_t)(int64_t)i->off))
#define ATOMIC(NAME, op) \
	ATOMIC_##NAME##_W: __atomic_##op(AT(uint32_t), (uint32_t)SRC, __ATOMIC_RELAXED); NEXT; \
	ATOMIC_##NAME##_DW: __atomic_##op(AT(uint64_t), SRC, __ATOMIC_RELAXED); NEXT; \
	FETCH_##NAME##_W: SRC = __atomic_##op(AT(uint32_t), (uint32_t)SRC, \
					      __ATOMIC_SEQ_CST); NEXT; \
	FETCH_##NAME##_DW: SRC = __atomic_##op(AT(uint64_t), SRC, __ATOMIC_SEQ_CST); NEXT;

/*
 * Frequent pairs of instructions run as one operation. PAIRS lists these pairs. Both instructions
 * of a pair have the same destination. So the second instruction can use the value v of the first
 * instruction without loading v from the array of registers. The second instruction stays in the
 * code, because a jump may lead to it. X(first, v, second, what the second instruction does with v)
 */
#define LOADED(type) UNALIGNED(type, SRC + (uint64_t)(int64_t)i->off)
#define THEN(expr) i++; DST = (expr); NEXT;
#define THEN_X(expr) i++; DST = v; DST = (expr); NEXT;
#define THEN_IF(cond) i++; DST = v; GO((cond) ? i->off : 0);
#define PAIRS(X) \
	X(MOV64_X, SRC, ADD64_K, THEN(v + IMM)) \
	X(MOV64_X, SRC, AND64_K, THEN(v & IMM)) \
	X(MOV64_X, SRC, LSH64_K, THEN(v << (IMM & 63))) \
	X(MOV64_X, SRC, RSH64_K, THEN(v >> (IMM & 63))) \
	X(LSH64_K, DST << (IMM & 63), RSH64_K, THEN(v >> (IMM & 63))) \
	X(LSH64_K, DST << (IMM & 63), ARSH64_K, THEN((uint64_t)((int64_t)v >> (IMM & 63)))) \
	X(LSH64_K, DST << (IMM & 63), ADD64_X, THEN_X(v + SRC)) \
	X(AND64_K, DST & IMM, LSH64_K, THEN(v << (IMM & 63))) \
	X(LDX_B, LOADED(uint8_t), AND64_K, THEN(v & IMM)) \
	X(XOR32_X, (uint32_t)(DST ^ SRC), MUL32_K, THEN((uint32_t)v * (uint32_t)i->imm)) \
	X(LDX_B, LOADED(uint8_t), JEQ64_K, THEN_IF(v == IMM)) \
	X(LDX_B, LOADED(uint8_t), JNE64_K, THEN_IF(v != IMM)) \
	X(LDX_H, LOADED(uint16_t), JEQ64_K, THEN_IF(v == IMM)) \
	X(LDX_H, LOADED(uint16_t), JNE64_K, THEN_IF(v != IMM)) \
	X(LDX_W, LOADED(uint32_t), JEQ64_K, THEN_IF(v == IMM)) \
	X(LDX_W, LOADED(uint32_t), JNE64_K, THEN_IF(v != IMM)) \
	X(LDX_W, LOADED(uint32_t), JGE64_K, THEN_IF(v >= IMM)) \
	X(LDX_DW, LOADED(uint64_t), JEQ64_K, THEN_IF(v == IMM)) \
	X(LDX_DW, LOADED(uint64_t), JNE64_K, THEN_IF(v != IMM)) \
	X(BE16, __builtin_bswap16((uint16_t)DST), JEQ64_K, THEN_IF(v == IMM)) \
	X(BE16, __builtin_bswap16((uint16_t)DST), JNE64_K, THEN_IF(v != IMM)) \
	X(AND64_K, DST & IMM, JEQ64_K, THEN_IF(v == IMM)) \
	X(AND64_K, DST & IMM, JNE64_K, THEN_IF(v != IMM)) \
	X(ADD64_X, DST + SRC, JA, THEN_IF(true)) \
	X(ADD64_K, DST + IMM, JEQ64_K, THEN_IF(v == IMM)) \
	X(ADD64_K, DST + IMM, JNE64_K, THEN_IF(v != IMM)) \
	X(ADD64_K, DST + IMM, JLT64_K, THEN_IF(v < IMM)) \
	X(ADD64_K, DST + IMM, JGT64_X, THEN_IF(v > SRC)) \
	X(SUB64_K, DST - IMM, JNE64_K, THEN_IF(v != IMM))

enum pair {
	BEFORE_PAIRS = PB_BPF_NR_ALL_OPS - 1,
#define NUMBER(first, value, second, then) PAIR_##first##_##second,
	PAIRS(NUMBER)
#undef NUMBER
	ARRAY_LOOKUP,
	NR_LABELS
};
_Static_assert(NR_LABELS <= 256, "struct pb_bpf_code's op is a byte");

static uint8_t pair_of(uint8_t first, uint8_t second)
{
	static const struct { uint8_t first, second, op; } pairs[] = {
#define PAIR(first, value, second, then) \
	{ PB_BPF_OP_##first, PB_BPF_OP_##second, PAIR_##first##_##second },
		PAIRS(PAIR)
#undef PAIR
	};

	for (size_t i = 0; i < pb_array_size(pairs); i++)
		if (pairs[i].first == first && pairs[i].second == second)
			return pairs[i].op;
	return first;
}

/*
 * A lookup in an array runs as one operation, too. fixup.c emits this code for a lookup:
 *
 *	a = *(u32 *)(k)  if a >= N goto z  b = ELEMS ll  a <<= S (a *= S)  a += b  goto +1  z: a = 0
 *
 * The first instruction doesn't use its imm. So pb_bpf_encode() stores in this imm the factor by
 * which the index is multiplied: 1 << S for the shift, S for the product.
 */
#define LOOKUP_LENGTH	8
static bool is_lookup(const struct bpf_insn *i, const uint8_t *ops)
{
	uint8_t a = i->dst_reg, b = i[2].dst_reg;

	return ops[0] == PB_BPF_OP_LDX_W && ops[1] == PB_BPF_OP_JGE64_K && i[1].off == 5 &&
	       ops[2] == PB_BPF_OP_LD_IMM64 &&
	       (ops[4] == PB_BPF_OP_LSH64_K || ops[4] == PB_BPF_OP_MUL64_K) &&
	       ops[5] == PB_BPF_OP_ADD64_X && ops[6] == PB_BPF_OP_JA && i[6].off == 1 &&
	       ops[7] == PB_BPF_OP_MOV64_K && !i[7].imm && i[1].dst_reg == a && i[4].dst_reg == a &&
	       i[5].dst_reg == a && i[7].dst_reg == a && i[5].src_reg == b && a != b;
}

static int64_t sdiv64(int64_t d, int64_t s)
{
	return !s ? 0 : s == -1 ? (int64_t)-(uint64_t)d : d / s;
}

static int64_t smod64(int64_t d, int64_t s)
{
	return !s ? d : s == -1 ? 0 : d % s;
}

static int32_t sdiv32(int32_t d, int32_t s)
{
	return !s ? 0 : s == -1 ? (int32_t)-(uint32_t)d : d / s;
}

static int32_t smod32(int32_t d, int32_t s)
{
	return !s ? d : s == -1 ? 0 : d % s;
}

/* Runs the program from instruction `start` until the subprogram of `start` returns. r: the 12
 * registers r0 to r10 and PB_BPF_REG_AX. The caller has set the registers of the arguments. */
static uint64_t interpret(struct pb_bpf_run *run, uint64_t *r, uint32_t start)
{
	const struct pb_bpf_prog *prog = run->prog;
	static const void *const labels[] = {
		[PB_BPF_OP_NONE] = &&NONE,
#define LABEL(name, ...) [PB_BPF_OP_##name] = &&name,
		PB_BPF_OPS(LABEL)
		PB_BPF_RESOLVED_OPS(LABEL)
#undef LABEL
#define LABEL(first, value, second, then) [PAIR_##first##_##second] = &&PAIR_##first##_##second,
		PAIRS(LABEL)
#undef LABEL
		[ARRAY_LOOKUP] = &&ARRAY_LOOKUP,
	};
	uint64_t stack[PB_BPF_WHOLE_STACK / 8];
	struct frame frames[PB_BPF_MAX_FRAMES - 1], *frame = frames;
	const struct pb_bpf_code *i = prog->code + start;
	uint64_t (*enter)(const void *ctx, struct pb_bpf_run *run);

	r[10] = (uint64_t)(stack + PB_BPF_WHOLE_STACK / 8);
	goto *labels[i->op];

#include "bpf/core/interp_template.h"
#define BODY(first, value, second, then) PAIR_##first##_##second: { uint64_t v = (value); then }
	PAIRS(BODY)
#undef BODY
	/* resolved programs don't have these operations */
	LD_ABS_B: LD_ABS_H: LD_ABS_W: LD_IND_B: LD_IND_H: LD_IND_W:
	CALL_KFUNC: MAY_GOTO:
	NONE:
	return 0;
}

void pb_bpf_encode(const struct bpf_insn *insns, const uint8_t *ops, uint32_t nr,
		   struct pb_bpf_code *code)
{
	for (uint32_t n = 0; n < nr; n++) {
		const struct bpf_insn *i = &insns[n];

		code[n] = (struct pb_bpf_code){ .op = ops[n], .dst = (uint8_t)(i->dst_reg * 8),
			.src = (uint8_t)(i->src_reg * 8), .off = i->off, .imm = i->imm };
		if (n + 1 < nr && i[1].dst_reg == i->dst_reg)
			code[n].op = pair_of(ops[n], ops[n + 1]);
		if (n + LOOKUP_LENGTH <= nr && is_lookup(i, &ops[n])) {
			code[n].op = ARRAY_LOOKUP;
			code[n].imm = i[4].imm;
			if (ops[n + 4] == PB_BPF_OP_LSH64_K)
				code[n].imm = (int64_t)(1ull << (i[4].imm & 63));
		}
		if (ops[n] != PB_BPF_OP_LD_IMM64)
			continue;
		code[n].imm = (int64_t)((uint64_t)(uint32_t)i[1].imm << 32 | (uint32_t)i->imm);
		if (i->src_reg == BPF_PSEUDO_FUNC)
			code[n].imm = (int64_t)(TOKEN | (uint64_t)(n + 1 + (uint32_t)i->imm));
	}
}

uint64_t pb_bpf_interpret(struct pb_bpf_run *run)
{
	uint64_t r[12];

	r[1] = (uint64_t)run->ctx;
	return interpret(run, r, 0);
}

uint64_t pb_bpf_enter_interpreted(const void *ctx, struct pb_bpf_run *run)
{
	return pb_bpf_interpret(run);
}

uint64_t pb_bpf_call_back(struct pb_bpf_run *run, uint64_t func, uint64_t r1, uint64_t r2,
			  uint64_t r3, uint64_t r4, uint64_t r5)
{
	const struct pb_bpf_prog *prog = run->prog;
	uint64_t r[12];

	if (func & TOKEN) {
		r[1] = r1;
		r[2] = r2;
		r[3] = r3;
		r[4] = r4;
		r[5] = r5;
		r[0] = interpret(run, r, (uint32_t)func);
	} else {
		r[0] = pb_bpf_call_native(r1, r2, r3, r4, r5, run, (pb_bpf_fn *)func);
	}
	/* a tail call in the callback may have changed run->prog */
	run->prog = prog;
	return r[0];
}
