/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arithmetic in native code. */
#include "bpf/jit/jit_priv.h"

/* Returns the register that has the second operand. If the operand is a constant, writes code that
 * loads it into r11. */
static int operand(struct pb_jit *j, const struct bpf_insn *i, bool wide, bool by_reg)
{
	uint64_t v = wide ? (uint64_t)(int64_t)i->imm : (uint32_t)i->imm;

	if (by_reg)
		return REG(i->src_reg);
	if (j->job->blind)
		pb_jit_hide_imm(j, wide, R11, v);
	else
		pb_jit_mov_imm(j, R11, v);
	return R11;
}

/* dst = dst / r11 or dst % r11. The division changes rax and rdx. Unless rax is dst, rax is saved
 * below rsp and restored. Unless rdx is dst, rdx is saved in r9 and restored. */
static void divide_by_r11(struct pb_jit *j, int dst, bool wide, bool is_signed, bool modulo)
{
	bool keep_dx = dst != RDX, keep_ax = dst != RAX;

	if (keep_dx)
		pb_jit_mov(j, true, R9, RDX);
	if (keep_ax) {
		pb_jit_rm(j, true, 0x89, RAX, RSP, -8, false);
		pb_jit_mov(j, wide, RAX, dst);
	}
	if (is_signed) {
		pb_jit_rex(j, wide, 0, 0, false);
		pb_jit_bytes(j, 0x99, 1);			/* cdq, cqo */
	} else {
		pb_jit_rr(j, false, 0x31, RDX, RDX);
	}
	pb_jit_group3(j, wide, is_signed ? 7 : 6, R11);
	if (dst != (modulo ? RDX : RAX))
		pb_jit_mov(j, wide, keep_ax && keep_dx ? R11 : dst, modulo ? RDX : RAX);
	if (keep_dx)
		pb_jit_mov(j, true, RDX, R9);
	if (keep_ax)
		pb_jit_rm(j, true, 0x8b, RAX, RSP, -8, false);
	if (keep_ax && keep_dx)
		pb_jit_mov(j, wide, dst, R11);
}

/* dst = dst / src or dst % src. In eBPF, x / 0 is 0 and x % 0 is x. The processor would trap if
 * it divided by 0, or the least signed number by -1. So the code tests the divisor first. */
static void divide(struct pb_jit *j, const struct bpf_insn *i, bool wide, bool is_signed,
		   bool modulo, bool by_reg)
{
	int dst = REG(i->dst_reg);
	bool may_be_0 = by_reg || !i->imm, may_be_m1 = is_signed && (by_reg || i->imm == -1);
	int from = operand(j, i, wide, by_reg);
	uint32_t zero = 0, one = 0, done = 0, done2 = 0;

	if (from != R11)
		pb_jit_mov(j, wide, R11, from);
	if (may_be_0) {
		pb_jit_rr(j, wide, 0x85, R11, R11);
		zero = pb_jit_skip(j, 0x70 | CC_E);
	}
	if (may_be_m1) {
		pb_jit_group1(j, wide, 7, R11, -1);
		one = pb_jit_skip(j, 0x70 | CC_E);
	}
	divide_by_r11(j, dst, wide, is_signed, modulo);
	if (may_be_m1) {
		done = pb_jit_skip(j, 0xeb);
		pb_jit_here(j, one);
		if (modulo)
			pb_jit_rr(j, false, 0x31, dst, dst);
		else
			pb_jit_group3(j, wide, 3, dst);
	}
	if (may_be_0) {
		done2 = pb_jit_skip(j, 0xeb);
		pb_jit_here(j, zero);
		if (!modulo)
			pb_jit_rr(j, false, 0x31, dst, dst);
		else if (!wide)
			pb_jit_mov(j, false, dst, dst);
		pb_jit_here(j, done2);
	}
	if (may_be_m1)
		pb_jit_here(j, done);
}

/* ext: 1 ror, 4 shl, 5 shr, 7 sar */
static void shift_imm(struct pb_jit *j, bool wide, int ext, int reg, int32_t by)
{
	pb_jit_rex(j, wide, 0, reg, false);
	pb_jit_bytes(j, by == 1 ? 0xd1 : 0xc1, 1);
	pb_jit_modrm(j, ext, reg);
	if (by != 1)
		pb_jit_bytes(j, (uint32_t)by, 1);
}

/* shifts reg by cl */
static void shift_cl(struct pb_jit *j, bool wide, int ext, int reg)
{
	pb_jit_rex(j, wide, 0, reg, false);
	pb_jit_bytes(j, 0xd3, 1);
	pb_jit_modrm(j, ext, reg);
}

static void shift_reg(struct pb_jit *j, bool wide, int ext, int dst, int src)
{
	if (j->job->bmi2) {
		/* shlx, shrx, sarx dst, dst, src: VEX.LZ.{66,F2,F3}.0F38 F7 */
		unsigned pp = ext == 4 ? 1 : ext == 5 ? 3 : 2;

		pb_jit_bytes(j, 0xc4, 1);
		pb_jit_bytes(j, 0x42u | (dst & 8 ? 0 : 0x80u) | (dst & 8 ? 0 : 0x20u), 1);
		pb_jit_bytes(j, (wide ? 0x80u : 0) | (~(unsigned)src & 15) << 3 | pp, 1);
		pb_jit_bytes(j, 0xf7, 1);
		pb_jit_modrm(j, dst, dst);
	} else if (src == RCX && dst != RCX) {
		shift_cl(j, wide, ext, dst);
	} else {
		pb_jit_mov(j, true, R9, RCX);
		if (src != RCX)
			pb_jit_mov(j, true, RCX, src);
		shift_cl(j, wide, ext, dst == RCX ? R9 : dst);
		pb_jit_mov(j, true, RCX, R9);
	}
}

void pb_jit_swap(struct pb_jit *j, int reg, unsigned width, bool swap)
{
	if (width == 2) {
		if (swap) {
			pb_jit_bytes(j, 0x66, 1);
			shift_imm(j, false, 1, reg, 8);
		}
		pb_jit_rr(j, false, 0x0fb7, reg, reg);
	} else if (swap) {
		pb_jit_rex(j, width == 8, 0, reg, false);
		pb_jit_bytes(j, 0x0f | (0xc8u | (reg & 7u)) << 8, 2);
	} else if (width == 4) {
		pb_jit_mov(j, false, reg, reg);
	}
}

void pb_jit_movsx(struct pb_jit *j, const struct bpf_insn *i, bool wide, unsigned width)
{
	int dst = REG(i->dst_reg), src = REG(i->src_reg);
	unsigned op = width == 1 ? 0xbe0f : 0xbf0f;

	pb_jit_rex(j, wide, dst, src, width == 1 && src >= RSP && src < R8);
	pb_jit_bytes(j, width == 4 ? 0x63 : op, width == 4 ? 1 : 2);
	pb_jit_modrm(j, dst, src);
}

static void move(struct pb_jit *j, const struct bpf_insn *i, bool wide, bool by_reg)
{
	uint64_t v = wide ? (uint64_t)(int64_t)i->imm : (uint32_t)i->imm;

	if (by_reg)
		pb_jit_mov(j, wide, REG(i->dst_reg), REG(i->src_reg));
	else if (j->job->blind)
		pb_jit_hide_imm(j, wide, REG(i->dst_reg), v);
	else
		pb_jit_mov_imm(j, REG(i->dst_reg), v);
}

static void multiply(struct pb_jit *j, const struct bpf_insn *i, bool wide, bool by_reg)
{
	int dst = REG(i->dst_reg);
	bool small = i->imm == (int8_t)i->imm;

	if (by_reg || j->job->blind) {
		pb_jit_rr(j, wide, 0x0faf, dst, operand(j, i, wide, by_reg));
	} else {
		pb_jit_rr(j, wide, small ? 0x6b : 0x69, dst, dst);
		pb_jit_bytes(j, (uint32_t)i->imm, small ? 1 : 4);
	}
}

void pb_jit_alu(struct pb_jit *j, const struct bpf_insn *i, bool wide, bool by_reg)
{
	static const uint8_t codes[16] = { [BPF_ADD >> 4] = 0x01, [BPF_SUB >> 4] = 0x29,
		[BPF_OR >> 4] = 0x09, [BPF_AND >> 4] = 0x21, [BPF_XOR >> 4] = 0x31 };
	static const uint8_t shifts[16] = { [BPF_LSH >> 4] = 4, [BPF_RSH >> 4] = 5,
		[BPF_ARSH >> 4] = 7 };
	bool from_reg = by_reg || j->job->blind;
	int dst = REG(i->dst_reg);
	unsigned op = BPF_OP(i->code) >> 4;

	switch (BPF_OP(i->code)) {
	case BPF_MOV:
		move(j, i, wide, by_reg);
		break;
	case BPF_MUL:
		multiply(j, i, wide, by_reg);
		break;
	case BPF_DIV: case BPF_MOD:
		divide(j, i, wide, i->off == 1, BPF_OP(i->code) == BPF_MOD, by_reg);
		break;
	case BPF_LSH: case BPF_RSH: case BPF_ARSH:
		if (from_reg)
			shift_reg(j, wide, shifts[op], dst, operand(j, i, wide, by_reg));
		else
			shift_imm(j, wide, shifts[op], dst, i->imm & (wide ? 63 : 31));
		break;
	default:
		if (from_reg)
			pb_jit_rr(j, wide, codes[op], operand(j, i, wide, by_reg), dst);
		else
			pb_jit_group1(j, wide, codes[op] >> 3, dst, i->imm);
	}
}
