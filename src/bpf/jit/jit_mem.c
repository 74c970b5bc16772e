/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads, stores and atomics in native code. */
#include "bpf/jit/jit_priv.h"

void pb_jit_load64(struct pb_jit *j, const struct bpf_insn *i)
{
	uint64_t v = (uint64_t)(uint32_t)i[1].imm << 32 | (uint32_t)i->imm;

	if (j->job->blind)
		pb_jit_hide_imm(j, true, REG(i->dst_reg), v);
	else
		pb_jit_mov_imm(j, REG(i->dst_reg), v);
}

void pb_jit_load(struct pb_jit *j, const struct bpf_insn *i, unsigned width, bool sx)
{
	static const uint16_t zero[] = { [1] = 0x0fb6, [2] = 0x0fb7, [4] = 0x8b, [8] = 0x8b };
	static const uint16_t sign[] = { [1] = 0x0fbe, [2] = 0x0fbf, [4] = 0x63 };

	pb_jit_rm(j, sx || width == 8, sx ? sign[width] : zero[width], REG(i->dst_reg),
		  REG(i->src_reg), i->off, false);
}

/* After a fault the thread continues in code that pb_jit_fixups() writes after the last
 * instruction: xor dst, dst; jmp next instruction */
void pb_jit_probe(struct pb_jit *j, const struct bpf_insn *i, unsigned width, bool sx)
{
	struct pb_bpf_jit_fault *f = j->job->faults;

	if (j->out && f && j->faults < j->job->nr_faults)
		f[j->faults].at = j->at;
	j->faults++;
	pb_jit_load(j, i, width, sx);
}

void pb_jit_fixups(struct pb_jit *j)
{
	const struct pb_bpf_prog *p = j->prog;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->nr && n < j->faults; i++) {
		if (p->ops[i] < PB_BPF_OP_PROBE_B || p->ops[i] > PB_BPF_OP_PROBE_SW)
			continue;
		if (j->out && j->job->faults && n < j->job->nr_faults)
			j->job->faults[n].to = j->at;
		n++;
		pb_jit_rr(j, false, 0x31, REG(p->insns[i].dst_reg), REG(p->insns[i].dst_reg));
		pb_jit_jump_far(j, -1, j->addr[i + 1]);
	}
}

void pb_jit_store(struct pb_jit *j, const struct bpf_insn *i, unsigned width, bool imm)
{
	int from = REG(i->src_reg);

	if (imm && j->job->blind) {
		from = R11;
		pb_jit_hide_imm(j, width == 8, R11, width == 8 ? (uint64_t)(int64_t)i->imm :
				(uint32_t)i->imm);
		imm = false;
	}
	if (width == 2)
		pb_jit_bytes(j, 0x66, 1);
	if (!imm) {
		pb_jit_rm(j, width == 8, width == 1 ? 0x88 : 0x89, from, REG(i->dst_reg), i->off,
			  width == 1);
		return;
	}
	pb_jit_rm(j, width == 8, width == 1 ? 0xc6 : 0xc7, 0, REG(i->dst_reg), i->off, false);
	pb_jit_bytes(j, (uint32_t)i->imm, width == 8 ? 4 : (int)width);
}

/* Atomic OR, AND and XOR that return the old value. The processor has no such instructions, so the
 * code repeats a cmpxchg until no other thread has changed the word since the code read it. */
static void fetch_loop(struct pb_jit *j, const struct bpf_insn *i, bool wide, unsigned op)
{
	int dst = REG(i->dst_reg), src = REG(i->src_reg);
	int base = dst == RAX ? R11 : dst, with = src == RAX ? R11 : src;
	uint32_t loop;

	pb_jit_mov(j, true, R11, RAX);
	pb_jit_rm(j, wide, 0x8b, RAX, base, i->off, false);
	loop = j->at;
	pb_jit_mov(j, true, R9, RAX);
	pb_jit_rr(j, wide, op, with, R9);
	pb_jit_bytes(j, 0xf0, 1);
	pb_jit_rm(j, wide, 0x0fb1, R9, base, i->off, false);
	pb_jit_bytes(j, 0x70 | CC_NE, 1);
	pb_jit_bytes(j, loop - (j->at + 1), 1);
	if (src != RAX) {
		pb_jit_mov(j, wide, src, RAX);
		pb_jit_mov(j, true, RAX, R11);
	}
}

void pb_jit_atomic(struct pb_jit *j, const struct bpf_insn *i, enum pb_bpf_op op)
{
	bool wide = pb_bpf_ops[op].width == 8, fetch = i->imm & BPF_FETCH;
	unsigned code;

	switch (i->imm) {
	case BPF_ADD: case BPF_ADD | BPF_FETCH:
		code = fetch ? 0x0fc1 : 0x01;
		break;
	case BPF_XCHG:
		code = 0x87;
		break;
	case BPF_CMPXCHG:
		code = 0x0fb1;
		break;
	default:
		code = BPF_OP(i->imm) == BPF_OR ? 0x09 : BPF_OP(i->imm) == BPF_AND ? 0x21 : 0x31;
		if (fetch) {
			fetch_loop(j, i, wide, code);
			return;
		}
	}
	pb_jit_bytes(j, 0xf0, 1);
	pb_jit_rm(j, wide, code, REG(i->src_reg), REG(i->dst_reg), i->off, false);
	if (i->imm == BPF_CMPXCHG && !wide)
		pb_jit_mov(j, false, RAX, RAX);
}
