/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The JIT: translates a verified and resolved program to x86-64 code. jit_priv.h describes the
 * registers and the JIT's parts. jit_call.c describes the frames. bpf/run/image.c maps the code.
 *
 * Layout. A short jump has 2 bytes. A long jump has 5 bytes, or 6 if it is a jcc. The form of a
 * jump depends on its distance, and the distance depends on the form of the jumps in between. So
 * the JIT lays out the code in passes. For instructions that a pass hasn't reached yet, the pass
 * uses the addresses of the previous pass:
 *
 *   first pass   each instruction counts as PB_BPF_JIT_MOST bytes, so most forward jumps are long
 *   next passes  the addresses get closer to the final ones, so jumps become short, and the code
 *                shrinks. Rarely, a short jump becomes long again: the pass has moved the jump to a
 *                lower address, but still uses the target's address of the previous pass
 *   settled      after PASSES passes, a long jump stays long. Without this limit, there could be
 *                many passes: in the worst case, each pass makes only one more jump short
 *   end          if no address has moved, all jumps are right. One more pass writes the bytes
 *
 * A caller can learn the code's size before it provides a buffer: without a buffer, pb_bpf_jit()
 * lays out the code but doesn't write it. If the caller doesn't know the code's address yet (base
 * is 0), calls of helpers have their long form. So the final code may be shorter.
 *
 * Faults. If a load faults, its destination becomes 0. For each load that may fault, the table of
 * faults has the load's address, and the address of code at which to continue after a fault. That
 * code sets the destination to 0, and jumps to the instruction after the load. It is placed after
 * the program's last instruction (pb_jit_fixups), outside of the usual path.
 *
 * Fusion (jit_fuse.c). The JIT has two shortcuts. Two or three eBPF instructions may become one
 * instruction of the processor. A comparison with 0 may use the flags that the previous instruction
 * has set. The JIT takes a shortcut only if no jump leads to the second or third of the
 * instructions.
 *
 * Blinding. Blinding keeps immediate operands that the program chooses out of executable memory:
 * the code computes them from other constants (pb_jit_hide_imm).
 */
#include <cpuid.h>
#include <errno.h>
#include "bpf/jit/jit_priv.h"

#define PASSES	12		/* number of passes after which long jumps stay long */

static void branch(struct pb_jit *j, const struct bpf_insn *i, bool wide, bool by_reg)
{
	static const uint8_t conditions[16] = {
		[BPF_JEQ >> 4] = CC_E, [BPF_JNE >> 4] = CC_NE, [BPF_JGT >> 4] = CC_A,
		[BPF_JGE >> 4] = CC_AE, [BPF_JLT >> 4] = CC_B, [BPF_JLE >> 4] = CC_BE,
		[BPF_JSET >> 4] = CC_NE, [BPF_JSGT >> 4] = CC_G, [BPF_JSGE >> 4] = CC_GE,
		[BPF_JSLT >> 4] = CC_L, [BPF_JSLE >> 4] = CC_LE };
	int dst = REG(i->dst_reg), src = REG(i->src_reg);
	bool test = BPF_OP(i->code) == BPF_JSET;

	if (!by_reg && pb_jit_flags_are_of(j, i, wide)) {
		pb_jit_jump(j, BPF_OP(i->code) == BPF_JEQ ? CC_E : CC_NE,
			    j->addr[(int64_t)j->i + 1 + i->off]);
		return;
	}
	if (!by_reg && j->job->blind) {
		src = R11;
		by_reg = true;
		pb_jit_hide_imm(j, wide, R11, wide ? (uint64_t)(int64_t)i->imm : (uint32_t)i->imm);
	}
	if (by_reg) {
		pb_jit_rr(j, wide, test ? 0x85 : 0x39, src, dst);
	} else if (test) {
		pb_jit_group3(j, wide, 0, dst);
		pb_jit_bytes(j, (uint32_t)i->imm, 4);
	} else if (!i->imm) {
		pb_jit_rr(j, wide, 0x85, dst, dst);
	} else {
		pb_jit_group1(j, wide, 7, dst, i->imm);
	}
	pb_jit_jump(j, conditions[BPF_OP(i->code) >> 4], j->addr[(int64_t)j->i + 1 + i->off]);
}

static void load_imm64(struct pb_jit *j, const struct bpf_insn *i)
{
	if (i->src_reg == BPF_PSEUDO_FUNC)
		pb_jit_func_address(j, REG(i->dst_reg), j->i + 1 + (uint32_t)i->imm);
	else
		pb_jit_load64(j, i);
}

static const struct { uint8_t width, sign; } probes[PB_BPF_NR_ALL_OPS - PB_BPF_NR_OPS] = {
#define ROW(name, width, sign) [PB_BPF_OP_##name - PB_BPF_NR_OPS] = { width, sign },
	PB_BPF_RESOLVED_OPS(ROW)
#undef ROW
};

/* Translates an operation that only resolved programs have. */
static bool resolved(struct pb_jit *j, const struct bpf_insn *i, uint8_t op)
{
	if (op >= PB_BPF_NR_ALL_OPS)
		return false;
	if (op == PB_BPF_OP_TAIL_CALL)
		pb_jit_tail_call(j);
	else if (op == PB_BPF_OP_NOSPEC)
		pb_jit_bytes(j, 0xe8ae0f, 3);		/* lfence */
	else
		pb_jit_probe(j, i, probes[op - PB_BPF_NR_OPS].width,
			     probes[op - PB_BPF_NR_OPS].sign);
	return true;
}

static bool insn(struct pb_jit *j, const struct bpf_insn *i, uint8_t op)
{
	const struct pb_bpf_opinfo *o;
	bool wide;

	if (op >= PB_BPF_NR_OPS)
		return resolved(j, i, op);
	o = &pb_bpf_ops[op];
	wide = BPF_CLASS(o->code) == BPF_ALU64 || BPF_CLASS(o->code) == BPF_JMP;
	switch (o->form) {
	case PB_BPF_ALU_K: case PB_BPF_ALU_X:
		pb_jit_alu(j, i, wide, o->form == PB_BPF_ALU_X);
		return true;
	case PB_BPF_NEG:
		pb_jit_group3(j, wide, 3, REG(i->dst_reg));
		return true;
	case PB_BPF_MOVSX:
		pb_jit_movsx(j, i, wide, o->width);
		return true;
	case PB_BPF_END:
		pb_jit_swap(j, REG(i->dst_reg), o->width, wide || BPF_SRC(i->code) == BPF_TO_BE);
		return true;
	case PB_BPF_LD64:
		load_imm64(j, i);
		return true;
	case PB_BPF_LDX: case PB_BPF_LDSX:
		pb_jit_load(j, i, o->width, o->form == PB_BPF_LDSX);
		return true;
	case PB_BPF_ST: case PB_BPF_STX:
		pb_jit_store(j, i, o->width, o->form == PB_BPF_ST);
		return true;
	case PB_BPF_ATOMIC: case PB_BPF_FETCH: case PB_BPF_XCHANGE: case PB_BPF_COMPARE:
		pb_jit_atomic(j, i, op);
		return true;
	case PB_BPF_GOTO: case PB_BPF_GOTOL:
		pb_jit_jump(j, -1, j->addr[(int64_t)j->i + 1 +
					   (o->form == PB_BPF_GOTO ? i->off : i->imm)]);
		return true;
	case PB_BPF_IF_K: case PB_BPF_IF_X:
		branch(j, i, wide, o->form == PB_BPF_IF_X);
		return true;
	case PB_BPF_CALL_HELPER:
		pb_jit_call_helper(j, j->prog->calls[i->imm]);
		return true;
	case PB_BPF_CALL_PC:
		pb_jit_call_pc(j, j->i + 1 + (uint32_t)i->imm);
		return true;
	case PB_BPF_RETURN:
		pb_jit_epilogue(j);
		return true;
	default:
		return false;
	}
}

static bool pass(struct pb_jit *j)
{
	const struct pb_bpf_prog *p = j->prog;
	unsigned fused;

	j->at = j->sub = j->faults = 0;
	j->moved = false;
	j->zero_flag = PB_JIT_NO_FLAG;
	for (j->i = 0; j->i < p->nr; j->i++) {
		if (j->sub + 1 < p->nr_subs && p->subs[j->sub + 1].start == j->i)
			j->sub++;
		j->hidden = 0;
		if (p->subs[j->sub].start == j->i)
			pb_jit_prologue(j);
		pb_jit_place(j, &j->addr[j->i]);
		fused = pb_jit_fused(j, &p->insns[j->i], p->ops[j->i]);
		if (fused) {
			while (--fused)
				pb_jit_place(j, &j->addr[++j->i]);
			j->zero_flag = PB_JIT_NO_FLAG;
			continue;
		}
		if (p->ops[j->i] && !insn(j, &p->insns[j->i], p->ops[j->i]))
			return false;
		pb_jit_note_flags(j, &p->insns[j->i], p->ops[j->i]);
	}
	pb_jit_place(j, &j->addr[j->i]);
	pb_jit_fixups(j);
	if (j->out && j->job->nr_frames)
		j->job->frames[j->job->nr_frames - 1].end = j->at;
	return true;
}

int pb_bpf_jit(struct pb_bpf_jit *job)
{
	const struct pb_bpf_prog *p = job->prog;
	struct pb_jit j = { .job = job, .prog = p, .addr = job->addr, .size = job->size };

	if (p->nr > INT32_MAX / PB_BPF_JIT_MOST || p->nr_subs > PB_BPF_MAX_SUBPROGS)
		return -E2BIG;
	/* the first addresses are too large: most forward jumps are long at first, and become short
	 * in later passes */
	for (uint32_t i = 0; i <= p->nr; i++)
		job->addr[i] = i * PB_BPF_JIT_MOST;
	for (uint32_t s = 0; s < p->nr_subs; s++)
		j.subs[s].entry = j.subs[s].callback = p->subs[s].start * PB_BPF_JIT_MOST;
	pb_jit_find_saved(&j);
	pb_jit_find_targets(&j);
	job->passes = job->nr_frames = 0;
	do {
		j.settled = job->passes++ >= PASSES;
		if (job->passes > 2 * PASSES || !pass(&j))
			return -EINVAL;
	} while (j.moved);
	job->len = j.at;
	job->nr_faults = job->out ? job->nr_faults : j.faults;
	if (!job->out)
		return 0;
	if (j.at > job->size || j.faults > job->nr_faults)
		return -E2BIG;
	j.out = job->out;
	job->nr_faults = j.faults;
	return pass(&j) && !j.moved ? 0 : -EINVAL;
}

bool pb_bpf_jit_has_bmi2(void)
{
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_BMI2;
}
