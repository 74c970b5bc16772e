/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuses instructions. A copy or a shift, together with additions to its result, becomes one lea. A
 * comparison with 0 uses the flags of the instruction that computed the value. Instructions are
 * fused only if no jump leads to the second or third of them.
 */
#include "bpf/jit/jit_priv.h"

void pb_jit_find_targets(struct pb_jit *j)
{
	const struct pb_bpf_prog *p = j->prog;

	for (uint32_t i = 0; i < p->nr; i++)
		j->job->notes[i] = 0;
	for (uint32_t i = 0; i < p->nr; i++) {
		uint8_t form = p->ops[i] < PB_BPF_NR_OPS ? pb_bpf_ops[p->ops[i]].form :
			       PB_BPF_NO_INSN;
		int64_t to = (int64_t)i + 1;

		if (form == PB_BPF_GOTOL)
			to += p->insns[i].imm;
		else if (form == PB_BPF_GOTO || form == PB_BPF_IF_K || form == PB_BPF_IF_X)
			to += p->insns[i].off;
		else
			continue;
		j->job->notes[to] |= PB_JIT_TARGET;
	}
}

/* lea off(base, index << scale), dst. A base or index of -1 means: none. */
static void lea(struct pb_jit *j, int dst, int base, int index, int scale, int32_t off)
{
	bool small = off == (int8_t)off && base >= 0, none = !off && base >= 0 && (base & 7) != RBP;
	unsigned mod = base < 0 || none ? 0 : small ? 0x40 : 0x80;

	if (index < 0) {
		pb_jit_rm(j, true, 0x8d, dst, base, off, false);
		return;
	}
	pb_jit_bytes(j, 0x48u | (dst & 8 ? 4 : 0) | (index & 8 ? 2 : 0) |
		     (base >= 0 && base & 8 ? 1 : 0), 1);
	pb_jit_bytes(j, 0x8d, 1);
	pb_jit_bytes(j, mod | (dst & 7u) << 3 | 4, 1);
	pb_jit_bytes(j, (unsigned)scale << 6 | (index & 7u) << 3 | (base < 0 ? 5u : base & 7u), 1);
	if (!none)
		pb_jit_bytes(j, (uint32_t)off, small ? 1 : 4);
}

/* Returns the register that instruction i[2] adds to the destination of i[0]. -1: i[2] isn't such
 * an addition. */
static int added_then(const struct pb_jit *j, const struct bpf_insn *i)
{
	const struct pb_bpf_prog *p = j->prog;

	if (j->i + 2 >= p->nr || p->ops[j->i + 2] != PB_BPF_OP_ADD64_X ||
	    j->job->notes[j->i + 2] & PB_JIT_TARGET || i[2].dst_reg != i->dst_reg ||
	    i[2].src_reg == i->dst_reg)
		return -1;
	return REG(i[2].src_reg);
}

unsigned pb_jit_fused(struct pb_jit *j, const struct bpf_insn *i, uint8_t op)
{
	const struct pb_bpf_prog *p = j->prog;
	uint8_t next = j->i + 1 < p->nr ? p->ops[j->i + 1] : 0;
	int dst = REG(i->dst_reg), more;

	if ((next != PB_BPF_OP_ADD64_K && next != PB_BPF_OP_ADD64_X) ||
	    j->job->notes[j->i + 1] & PB_JIT_TARGET || i[1].dst_reg != i->dst_reg ||
	    (next == PB_BPF_OP_ADD64_K && j->job->blind))
		return 0;
	if (op == PB_BPF_OP_MOV64_X && next == PB_BPF_OP_ADD64_K) {
		more = added_then(j, i);
		lea(j, dst, REG(i->src_reg), more, 0, i[1].imm);
		return more < 0 ? 2 : 3;
	}
	if (op == PB_BPF_OP_MOV64_X && i[1].src_reg != i->dst_reg) {
		lea(j, dst, REG(i->src_reg), REG(i[1].src_reg), 0, 0);
	} else if (op == PB_BPF_OP_LSH64_K && i->imm >= 1 && i->imm <= 3 && !j->job->blind) {
		if (next == PB_BPF_OP_ADD64_K)
			lea(j, dst, -1, dst, i->imm, i[1].imm);
		else if (i[1].src_reg != i->dst_reg)
			lea(j, dst, REG(i[1].src_reg), dst, i->imm, 0);
		else
			return 0;
	} else {
		return 0;
	}
	return 2;
}

/* Returns whether the instruction sets the processor's zero flag according to its result. */
static bool sets_zero_flag(const struct bpf_insn *i, uint8_t form)
{
	if (form != PB_BPF_ALU_K && form != PB_BPF_ALU_X)
		return false;
	switch (BPF_OP(i->code)) {
	case BPF_ADD: case BPF_SUB: case BPF_AND: case BPF_OR: case BPF_XOR:
		return true;
	default:
		return false;
	}
}

void pb_jit_note_flags(struct pb_jit *j, const struct bpf_insn *i, uint8_t op)
{
	j->zero_flag = PB_JIT_NO_FLAG;
	if (op < PB_BPF_NR_OPS && sets_zero_flag(i, pb_bpf_ops[op].form))
		j->zero_flag = i->dst_reg;
	j->zero_wide = BPF_CLASS(i->code) == BPF_ALU64;
}

bool pb_jit_flags_are_of(const struct pb_jit *j, const struct bpf_insn *i, bool wide)
{
	bool equality = BPF_OP(i->code) == BPF_JEQ || BPF_OP(i->code) == BPF_JNE;

	/* a 32-bit operation clears the upper half, so its zero flag is right for 64 bits, too */
	return equality && !i->imm && j->zero_flag == i->dst_reg && (wide || !j->zero_wide) &&
	       !(j->job->notes[j->i] & PB_JIT_TARGET);
}
