/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Native code for x86-64. Registers are the kernel's choice, so that helpers are
 * called as they stand:
 *
 *   r0 rax   r1 rdi   r2 rsi   r3 rdx   r4 rcx   r5 r8   r6 rbx   r7 r13   r8 r14
 *   r9 r15   r10 rbp; r9, r10 and r11 of the processor are ours
 *
 * Each subprogram is a function with a frame of its own. Offsets of jumps settle in
 * passes: each pass lays out the code with the last one's addresses, until none
 * moves; code only shrinks, so that it ends.
 */
#include "bpf/jit.h"
#include "base/base.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

static const uint8_t regs[] = { RAX, RDI, RSI, RDX, RCX, R8, RBX, R13, R14, R15, RBP };

struct jit {
	uint8_t *out;		/* NULL: lengths only */
	uint32_t size, at;	/* of out; where the next byte goes */
	const struct pb_bpf_prog *prog;
	uint32_t *addr;		/* [nr + 1] of instructions, as of the last pass */
	uint32_t i;		/* the instruction */
	bool bmi2;
};

static void byte(struct jit *j, unsigned b)
{
	if (j->out && j->at < j->size)
		j->out[j->at] = (uint8_t)b;
	j->at++;
}

static void bytes(struct jit *j, uint64_t v, int n)
{
	for (; n--; v >>= 8)
		byte(j, (uint8_t)v);
}

static void rex(struct jit *j, bool wide, int reg, int rm, bool always)
{
	unsigned r = 0x40 | (wide ? 8 : 0) | (reg & 8 ? 4 : 0) | (rm & 8 ? 1 : 0);

	if (r != 0x40 || always)
		byte(j, r);
}

/* Opcodes of two bytes are 0x0fXX. */
static void opcode(struct jit *j, unsigned op)
{
	if (op > 0xff)
		byte(j, op >> 8);
	byte(j, op & 0xff);
}

static void modrm_reg(struct jit *j, int reg, int rm)
{
	byte(j, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

/* op reg, rm */
static void rr(struct jit *j, bool wide, unsigned op, int reg, int rm)
{
	rex(j, wide, reg, rm, false);
	opcode(j, op);
	modrm_reg(j, reg, rm);
}

static void modrm_mem(struct jit *j, int reg, int base, int32_t off)
{
	bool small = off == (int8_t)off;

	if (!off && (base & 7) != RBP)
		byte(j, (reg & 7) << 3 | (base & 7));
	else
		byte(j, (small ? 0x40 : 0x80) | (reg & 7) << 3 | (base & 7));
	if ((base & 7) == RSP)
		byte(j, 0x24);
	if (off || (base & 7) == RBP)
		bytes(j, (uint32_t)off, small ? 1 : 4);
}

/* op reg, off(base) */
static void rm(struct jit *j, bool wide, unsigned op, int reg, int base, int32_t off, bool byte_reg)
{
	rex(j, wide, reg, base, byte_reg);
	opcode(j, op);
	modrm_mem(j, reg, base, off);
}

static void mov(struct jit *j, bool wide, int to, int from)
{
	if (to != from || !wide)
		rr(j, wide, 0x89, from, to);
}

static void mov_imm(struct jit *j, int to, uint64_t v)
{
	if (!v) {
		rr(j, false, 0x31, to, to);
	} else if (v == (uint32_t)v) {
		rex(j, false, 0, to, false);
		byte(j, 0xb8 | (to & 7));
		bytes(j, v, 4);
	} else if (v == (uint64_t)(int64_t)(int32_t)v) {
		rex(j, true, 0, to, false);
		byte(j, 0xc7);
		modrm_reg(j, 0, to);
		bytes(j, v, 4);
	} else {
		rex(j, true, 0, to, false);
		byte(j, 0xb8 | (to & 7));
		bytes(j, v, 8);
	}
}

/* op /ext imm, reg: 0 add, 1 or, 4 and, 5 sub, 6 xor, 7 cmp */
static void group1(struct jit *j, bool wide, int ext, int reg, int32_t imm)
{
	bool small = imm == (int8_t)imm;

	rex(j, wide, 0, reg, false);
	byte(j, small ? 0x83 : 0x81);
	modrm_reg(j, ext, reg);
	bytes(j, (uint32_t)imm, small ? 1 : 4);
}

/* op /ext reg: 2 not, 3 neg, 4 mul, 6 div, 7 idiv */
static void group3(struct jit *j, bool wide, int ext, int reg)
{
	rex(j, wide, 0, reg, false);
	byte(j, 0xf7);
	modrm_reg(j, ext, reg);
}

/* A short jump over code that follows: returns where its displacement is. */
static uint32_t skip(struct jit *j, unsigned op)
{
	byte(j, op);
	byte(j, 0);
	return j->at - 1;
}

static void here(struct jit *j, uint32_t from)
{
	if (j->out && from < j->size)
		j->out[from] = (uint8_t)(j->at - from - 1);
}

/* To the start of an instruction. cc: the condition of jcc, or -1. */
static void jump(struct jit *j, int cc, int64_t target)
{
	int64_t to = j->addr[target], rel = to - (j->at + 2);

	if (rel == (int8_t)rel) {
		byte(j, cc < 0 ? 0xeb : 0x70 | cc);
		bytes(j, (uint64_t)rel, 1);
		return;
	}
	if (cc < 0) {
		byte(j, 0xe9);
		bytes(j, (uint64_t)(to - (j->at + 4)), 4);
	} else {
		byte(j, 0x0f);
		byte(j, 0x80 | cc);
		bytes(j, (uint64_t)(to - (j->at + 4)), 4);
	}
}

/* dst = dst / src or dst % src; src is a register or, if negative, imm. */
static void divide(struct jit *j, const struct bpf_insn *i, bool wide, bool is_signed, bool modulo,
		   bool by_reg)
{
	int dst = regs[i->dst_reg], keep = modulo ? RDX : RAX;
	uint32_t zero, one = 0, done, done2 = 0;

	if (by_reg)
		mov(j, true, R11, regs[i->src_reg]);
	else
		mov_imm(j, R11, wide ? (uint64_t)(int64_t)i->imm : (uint32_t)i->imm);
	rr(j, wide, 0x85, R11, R11);
	zero = skip(j, 0x74);
	if (is_signed) {
		group1(j, wide, 7, R11, -1);
		one = skip(j, 0x74);
	}
	mov(j, true, R9, RDX);
	mov(j, true, R10, RAX);
	if (dst != RAX)
		mov(j, wide, RAX, dst);
	if (is_signed)
		rex(j, wide, 0, 0, false), byte(j, 0x99);	/* cdq, cqo */
	else
		rr(j, false, 0x31, RDX, RDX);
	group3(j, wide, is_signed ? 7 : 6, R11);
	mov(j, true, R11, keep);
	mov(j, true, RDX, R9);
	mov(j, true, RAX, R10);
	mov(j, wide, dst, R11);
	done = skip(j, 0xeb);
	if (is_signed) {
		here(j, one);
		if (modulo)
			rr(j, false, 0x31, dst, dst);
		else
			group3(j, wide, 3, dst);
		done2 = skip(j, 0xeb);
	}
	here(j, zero);
	if (!modulo)
		rr(j, false, 0x31, dst, dst);
	else if (!wide)
		mov(j, false, dst, dst);
	here(j, done);
	if (is_signed)
		here(j, done2);
}

/* ext: 4 shl, 5 shr, 7 sar */
static void shift_imm(struct jit *j, bool wide, int ext, int reg, int32_t by)
{
	rex(j, wide, 0, reg, false);
	byte(j, 0xc1);
	modrm_reg(j, ext, reg);
	byte(j, (unsigned)by);
}

static void shift_reg(struct jit *j, bool wide, int ext, int dst, int src)
{
	if (j->bmi2) {
		/* shlx, shrx, sarx dst, dst, src: VEX.LZ.{66,F2,F3}.0F38 F7 */
		int pp = ext == 4 ? 1 : ext == 5 ? 3 : 2;

		byte(j, 0xc4);
		byte(j, 0x42 | (dst & 8 ? 0 : 0x80) | (dst & 8 ? 0 : 0x20));
		byte(j, (wide ? 0x80 : 0) | (~src & 15) << 3 | pp);
		byte(j, 0xf7);
		modrm_reg(j, dst, dst);
		return;
	}
	mov(j, true, R11, dst);
	mov(j, true, R10, RCX);
	if (src != RCX)
		mov(j, true, RCX, src);
	rex(j, wide, 0, R11, false);
	byte(j, 0xd3);
	modrm_reg(j, ext, R11);
	mov(j, true, RCX, R10);
	mov(j, wide, dst, R11);
}

static void end(struct jit *j, int reg, unsigned width, bool swap)
{
	if (width == 2) {
		if (swap) {
			byte(j, 0x66);
			shift_imm(j, false, 1, reg, 8);		/* ror */
		}
		rr(j, false, 0x0fb7, reg, reg);
	} else if (swap) {
		rex(j, width == 8, 0, reg, false);
		byte(j, 0x0f);
		byte(j, 0xc8 | (reg & 7));
	} else if (width == 4) {
		mov(j, false, reg, reg);
	}
}

static void fetch_loop(struct jit *j, const struct bpf_insn *i, bool wide, unsigned op)
{
	int dst = regs[i->dst_reg], src = regs[i->src_reg];
	uint32_t loop;

	rm(j, true, 0x8d, R10, dst, i->off, false);
	mov(j, true, R11, src);
	rm(j, true, 0x89, RAX, RSP, -8, false);
	rm(j, wide, 0x8b, RAX, R10, 0, false);
	loop = j->at;
	mov(j, true, R9, RAX);
	rr(j, wide, op, R11, R9);
	byte(j, 0xf0);
	rm(j, wide, 0x0fb1, R9, R10, 0, false);
	byte(j, 0x75);
	byte(j, loop - (j->at + 1));
	if (src != RAX) {
		mov(j, wide, src, RAX);
		rm(j, true, 0x8b, RAX, RSP, -8, false);
	}
}

static void atomic(struct jit *j, const struct bpf_insn *i, enum pb_bpf_op op)
{
	bool wide = pb_bpf_ops[op].width == 8;
	int dst = regs[i->dst_reg], src = regs[i->src_reg];
	unsigned code;

	switch (i->imm & ~BPF_FETCH) {
	case BPF_ADD:
		code = i->imm & BPF_FETCH ? 0x0fc1 : 0x01;
		break;
	case BPF_XCHG & ~BPF_FETCH:
		code = 0x87;
		break;
	case BPF_CMPXCHG & ~BPF_FETCH:
		code = 0x0fb1;
		break;
	default:
		code = (i->imm & ~BPF_FETCH) == BPF_OR ? 0x09 :
		       (i->imm & ~BPF_FETCH) == BPF_AND ? 0x21 : 0x31;
		if (i->imm & BPF_FETCH) {
			fetch_loop(j, i, wide, code);
			return;
		}
	}
	byte(j, 0xf0);
	rm(j, wide, code, src, dst, i->off, false);
	if (i->imm == BPF_CMPXCHG && !wide)
		mov(j, false, RAX, RAX);
}

static void prologue(struct jit *j)
{
	int32_t stack = (int32_t)pb_align_up(j->prog->stack, 16u);

	byte(j, 0x55);				/* push %rbp */
	mov(j, true, RBP, RSP);
	if (stack)
		group1(j, true, 5, RSP, stack);
	byte(j, 0x53);				/* rbx, r13, r14, r15 */
	bytes(j, 0x5541, 2);
	bytes(j, 0x5641, 2);
	bytes(j, 0x5741, 2);
}

static void epilogue(struct jit *j)
{
	bytes(j, 0x5f41, 2);
	bytes(j, 0x5e41, 2);
	bytes(j, 0x5d41, 2);
	byte(j, 0x5b);
	byte(j, 0xc9);				/* leave */
	byte(j, 0xc3);
}

static void load(struct jit *j, const struct bpf_insn *i, unsigned width, bool sx)
{
	static const uint16_t zero[] = { [1] = 0x0fb6, [2] = 0x0fb7, [4] = 0x8b, [8] = 0x8b };
	static const uint16_t sign[] = { [1] = 0x0fbe, [2] = 0x0fbf, [4] = 0x63 };

	rm(j, sx || width == 8, sx ? sign[width] : zero[width], regs[i->dst_reg], regs[i->src_reg],
	   i->off, false);
}

static void store(struct jit *j, const struct bpf_insn *i, unsigned width, bool imm)
{
	if (width == 2)
		byte(j, 0x66);
	if (!imm) {
		rm(j, width == 8, width == 1 ? 0x88 : 0x89, regs[i->src_reg], regs[i->dst_reg], i->off,
		   width == 1);
		return;
	}
	rm(j, width == 8, width == 1 ? 0xc6 : 0xc7, 0, regs[i->dst_reg], i->off, false);
	bytes(j, (uint32_t)i->imm, width == 8 ? 4 : (int)width);
}

static void alu(struct jit *j, const struct bpf_insn *i, bool wide, bool by_reg)
{
	static const uint8_t codes[16] = { [BPF_ADD >> 4] = 0x01, [BPF_SUB >> 4] = 0x29,
		[BPF_OR >> 4] = 0x09, [BPF_AND >> 4] = 0x21, [BPF_XOR >> 4] = 0x31 };
	static const uint8_t shifts[16] = { [BPF_LSH >> 4] = 4, [BPF_RSH >> 4] = 5, [BPF_ARSH >> 4] = 7 };
	int dst = regs[i->dst_reg], src = regs[i->src_reg];
	unsigned op = BPF_OP(i->code) >> 4;

	switch (BPF_OP(i->code)) {
	case BPF_MOV:
		if (by_reg)
			mov(j, wide, dst, src);
		else
			mov_imm(j, dst, wide ? (uint64_t)(int64_t)i->imm : (uint32_t)i->imm);
		break;
	case BPF_MUL:
		if (by_reg) {
			rr(j, wide, 0x0faf, dst, src);
		} else {
			rr(j, wide, 0x69, dst, dst);
			bytes(j, (uint32_t)i->imm, 4);
		}
		break;
	case BPF_DIV: case BPF_MOD:
		divide(j, i, wide, i->off == 1, BPF_OP(i->code) == BPF_MOD, by_reg);
		break;
	case BPF_LSH: case BPF_RSH: case BPF_ARSH:
		if (by_reg)
			shift_reg(j, wide, shifts[op], dst, src);
		else
			shift_imm(j, wide, shifts[op], dst, i->imm & (wide ? 63 : 31));
		break;
	default:
		if (by_reg)
			rr(j, wide, codes[op], src, dst);
		else
			group1(j, wide, codes[op] >> 3, dst, i->imm);
	}
}

static void movsx(struct jit *j, const struct bpf_insn *i, bool wide, unsigned width)
{
	int dst = regs[i->dst_reg], src = regs[i->src_reg];
	unsigned op = width == 1 ? 0x0fbe : width == 2 ? 0x0fbf : 0x63;

	rex(j, wide, dst, src, width == 1);
	opcode(j, op);
	modrm_reg(j, dst, src);
}

static void branch(struct jit *j, const struct bpf_insn *i, bool wide, bool by_reg)
{
	static const uint8_t conditions[16] = {
		[BPF_JEQ >> 4] = 4, [BPF_JNE >> 4] = 5, [BPF_JGT >> 4] = 7, [BPF_JGE >> 4] = 3,
		[BPF_JLT >> 4] = 2, [BPF_JLE >> 4] = 6, [BPF_JSET >> 4] = 5, [BPF_JSGT >> 4] = 15,
		[BPF_JSGE >> 4] = 13, [BPF_JSLT >> 4] = 12, [BPF_JSLE >> 4] = 14 };
	int dst = regs[i->dst_reg], src = regs[i->src_reg];
	bool test = BPF_OP(i->code) == BPF_JSET;

	if (by_reg) {
		rr(j, wide, test ? 0x85 : 0x39, src, dst);
	} else if (test) {
		rex(j, wide, 0, dst, false);
		byte(j, 0xf7);
		modrm_reg(j, 0, dst);
		bytes(j, (uint32_t)i->imm, 4);
	} else if (!i->imm) {
		rr(j, wide, 0x85, dst, dst);
	} else {
		group1(j, wide, 7, dst, i->imm);
	}
	jump(j, conditions[BPF_OP(i->code) >> 4], (int64_t)j->i + 1 + i->off);
}

static void call_helper(struct jit *j, pb_bpf_fn *fn)
{
	mov_imm(j, RAX, (uint64_t)fn);
	bytes(j, 0xd0ff, 2);			/* call *%rax */
}

static void call_pc(struct jit *j, int64_t target)
{
	byte(j, 0xe8);
	bytes(j, (uint64_t)((int64_t)j->addr[target] - (int64_t)(j->at + 4)), 4);
}

static bool insn(struct jit *j, const struct bpf_insn *i, enum pb_bpf_op op)
{
	const struct pb_bpf_opinfo *o = &pb_bpf_ops[op];
	uint8_t class = BPF_CLASS(o->code);
	bool wide = class == BPF_ALU64 || class == BPF_JMP;

	switch (o->form) {
	case PB_BPF_ALU_K: case PB_BPF_ALU_X:
		alu(j, i, wide, o->form == PB_BPF_ALU_X);
		return true;
	case PB_BPF_NEG:
		group3(j, wide, 3, regs[i->dst_reg]);
		return true;
	case PB_BPF_MOVSX:
		movsx(j, i, wide, o->width);
		return true;
	case PB_BPF_END:
		end(j, regs[i->dst_reg], o->width, wide || BPF_SRC(i->code) == BPF_TO_BE);
		return true;
	case PB_BPF_LD64:
		mov_imm(j, regs[i->dst_reg], (uint64_t)(uint32_t)i[1].imm << 32 | (uint32_t)i->imm);
		return true;
	case PB_BPF_LDX: case PB_BPF_LDSX:
		load(j, i, o->width, o->form == PB_BPF_LDSX);
		return true;
	case PB_BPF_ST: case PB_BPF_STX:
		store(j, i, o->width, o->form == PB_BPF_ST);
		return true;
	case PB_BPF_ATOMIC: case PB_BPF_FETCH: case PB_BPF_XCHANGE: case PB_BPF_COMPARE:
		atomic(j, i, op);
		return true;
	case PB_BPF_GOTO: case PB_BPF_GOTOL:
		jump(j, -1, (int64_t)j->i + 1 + (o->form == PB_BPF_GOTO ? i->off : i->imm));
		return true;
	case PB_BPF_IF_K: case PB_BPF_IF_X:
		branch(j, i, wide, o->form == PB_BPF_IF_X);
		return true;
	case PB_BPF_CALL_HELPER:
		call_helper(j, j->prog->calls[i->imm]);
		return true;
	case PB_BPF_CALL_PC:
		call_pc(j, (int64_t)j->i + 1 + i->imm);
		return true;
	case PB_BPF_RETURN:
		epilogue(j);
		return true;
	default:
		return false;
	}
}

/* Does a subprogram begin there? */
static bool begins(const uint8_t *starts, uint32_t i)
{
	return !i || (starts && starts[i / 8] >> (i % 8) & 1);
}

static bool pass(struct jit *j, const uint8_t *starts, bool *moved)
{
	const struct pb_bpf_prog *p = j->prog;

	j->at = 0;
	*moved = false;
	for (j->i = 0; j->i < p->nr; j->i++) {
		if (j->addr[j->i] != j->at) {
			j->addr[j->i] = j->at;
			*moved = true;
		}
		if (begins(starts, j->i))
			prologue(j);
		if (p->ops[j->i] && !insn(j, &p->insns[j->i], p->ops[j->i]))
			return false;
	}
	return true;
}

int64_t pb_bpf_jit(const struct pb_bpf_prog *prog, const uint8_t *starts, uint32_t *addr,
		   uint8_t *out, uint32_t size, bool bmi2)
{
	struct jit j = { .prog = prog, .addr = addr, .size = size, .bmi2 = bmi2 };
	bool moved = true;

	/* far at first, so that code shrinks */
	for (uint32_t i = 0; i <= prog->nr; i++)
		addr[i] = i * PB_BPF_JIT_MOST;
	for (int n = 0; moved; n++) {
		if (n > 64 || !pass(&j, starts, &moved))
			return -22;
	}
	if (j.at > size)
		return -7;
	j.out = out;
	if (out && (!pass(&j, starts, &moved) || moved))
		return -22;
	return j.at;
}
