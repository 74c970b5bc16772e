/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes instructions as text. Each form of instructions (enum pb_bpf_form in opcodes.h) has its
 * own output format. */
#include <stddef.h>
#include "bpf/core/disasm.h"

static const char *memory(unsigned width)
{
	return width == 1 ? "u8" : width == 2 ? "u16" : width == 4 ? "u32" : "u64";
}

static char reg(const struct pb_bpf_opinfo *o)
{
	return BPF_CLASS(o->code) == BPF_ALU || BPF_CLASS(o->code) == BPF_JMP32 ? 'w' : 'r';
}

static void load64(struct pb_bpf_text *t, const struct bpf_insn *i, const struct pb_bpf_names *n)
{
	uint64_t imm = (uint64_t)(uint32_t)i[1].imm << 32 | (uint32_t)i->imm;

	if (i->src_reg && i->src_reg != BPF_PSEUDO_FUNC && n->hide)
		imm = 0;
	pb_bpf_printf(t, "r%d = ", i->dst_reg);
	if (!n->imm64 || !n->imm64(n->arg, t, i, imm))
		pb_bpf_printf(t, "%#lx", imm);
}

static void atomic(struct pb_bpf_text *t, const struct bpf_insn *i, const struct pb_bpf_opinfo *o)
{
	const char *mem = memory(o->width), *wide = o->width == 8 ? "64" : "";

	switch (o->form) {
	case PB_BPF_ATOMIC:
		pb_bpf_printf(t, "lock *(%s *)(r%d %+d) %s r%d", mem, i->dst_reg, i->off, o->symbol,
			      i->src_reg);
		break;
	case PB_BPF_FETCH:
		pb_bpf_printf(t, "r%d = atomic%s_fetch_%s((%s *)(r%d %+d), r%d)", i->src_reg, wide,
			      o->symbol, mem, i->dst_reg, i->off, i->src_reg);
		break;
	case PB_BPF_XCHANGE:
		pb_bpf_printf(t, "r%d = atomic%s_xchg((%s *)(r%d %+d), r%d)", i->src_reg, wide, mem,
			      i->dst_reg, i->off, i->src_reg);
		break;
	default:
		pb_bpf_printf(t, "r0 = atomic%s_cmpxchg((%s *)(r%d %+d), r0, r%d)", wide, mem,
			      i->dst_reg, i->off, i->src_reg);
	}
}

static void call(struct pb_bpf_text *t, const struct bpf_insn *i, const struct pb_bpf_opinfo *o,
		 const struct pb_bpf_names *n)
{
	const char *name = NULL;

	switch (o->form) {
	case PB_BPF_CALL_PC:
		pb_bpf_printf(t, "call pc%+d", i->imm);
		break;
	case PB_BPF_CALL_KFUNC:
		name = n->kfunc ? n->kfunc(n->arg, i->imm) : NULL;
		pb_bpf_printf(t, "call %s#%d", name ? name : "kernel-function", i->imm);
		break;
	default:
		if (n->helper)
			name = n->helper(n->arg, i->imm);
		pb_bpf_printf(t, "call %s#%d", name ? name : "unknown", i->imm);
	}
}

static void arithmetic(struct pb_bpf_text *t, const struct bpf_insn *i,
		       const struct pb_bpf_opinfo *o)
{
	int dst = i->dst_reg, src = i->src_reg;
	char r = reg(o);

	switch (o->form) {
	case PB_BPF_ALU_K:
		pb_bpf_printf(t, "%c%d %s %d", r, dst, o->symbol, i->imm);
		break;
	case PB_BPF_ALU_X:
		pb_bpf_printf(t, "%c%d %s %c%d", r, dst, o->symbol, r, src);
		break;
	case PB_BPF_NEG:
		pb_bpf_printf(t, "%c%d = -%c%d", r, dst, r, dst);
		break;
	case PB_BPF_MOVSX:
		pb_bpf_printf(t, "%c%d = (%s)%c%d", r, dst, o->symbol, r, src);
		break;
	default:
		pb_bpf_printf(t, "r%d = %s%d r%d", dst, o->symbol, i->imm, dst);
	}
}

static void access_memory(struct pb_bpf_text *t, const struct bpf_insn *i,
			  const struct pb_bpf_opinfo *o)
{
	int dst = i->dst_reg, src = i->src_reg;

	switch (o->form) {
	case PB_BPF_LD_ABS:
		pb_bpf_printf(t, "r0 = *(%s *)skb[%d]", memory(o->width), i->imm);
		break;
	case PB_BPF_LD_IND:
		pb_bpf_printf(t, "r0 = *(%s *)skb[r%d + %d]", memory(o->width), src, i->imm);
		break;
	case PB_BPF_LDX:
		pb_bpf_printf(t, "r%d = *(%s *)(r%d %+d)", dst, memory(o->width), src, i->off);
		break;
	case PB_BPF_LDSX:
		pb_bpf_printf(t, "r%d = *(s%d *)(r%d %+d)", dst, o->width * 8, src, i->off);
		break;
	case PB_BPF_ST:
		pb_bpf_printf(t, "*(%s *)(r%d %+d) = %d", memory(o->width), dst, i->off, i->imm);
		break;
	default:
		pb_bpf_printf(t, "*(%s *)(r%d %+d) = r%d", memory(o->width), dst, i->off, src);
	}
}

static void jump(struct pb_bpf_text *t, const struct bpf_insn *i, const struct pb_bpf_opinfo *o)
{
	int dst = i->dst_reg, src = i->src_reg;
	char r = reg(o);

	switch (o->form) {
	case PB_BPF_GOTO:
		pb_bpf_printf(t, "goto pc%+d", i->off);
		break;
	case PB_BPF_GOTOL:
		pb_bpf_printf(t, "gotol pc%+d", i->imm);
		break;
	case PB_BPF_MAY_GOTO:
		pb_bpf_printf(t, "may_goto pc%+d", i->off);
		break;
	case PB_BPF_IF_K:
		pb_bpf_printf(t, "if %c%d %s 0x%x goto pc%+d", r, dst, o->symbol, (unsigned)i->imm,
			      i->off);
		break;
	default:
		pb_bpf_printf(t, "if %c%d %s %c%d goto pc%+d", r, dst, o->symbol, r, src, i->off);
	}
}

void pb_bpf_disasm(struct pb_bpf_text *t, const struct bpf_insn *i,
		   const struct pb_bpf_names *names)
{
	static const struct pb_bpf_names none;
	const struct pb_bpf_opinfo *o = &pb_bpf_ops[pb_bpf_decode(i)];
	const struct pb_bpf_names *n = names ? names : &none;

	if (o->form == PB_BPF_NO_INSN) {
		pb_bpf_printf(t, "BUG_%02x", i->code);
		return;
	}
	pb_bpf_printf(t, "(%02x) ", i->code);
	switch (o->form) {
	case PB_BPF_ALU_K: case PB_BPF_ALU_X: case PB_BPF_NEG: case PB_BPF_MOVSX: case PB_BPF_END:
		arithmetic(t, i, o);
		break;
	case PB_BPF_LD64:
		load64(t, i, n);
		break;
	case PB_BPF_LD_ABS: case PB_BPF_LD_IND: case PB_BPF_LDX: case PB_BPF_LDSX: case PB_BPF_ST:
	case PB_BPF_STX:
		access_memory(t, i, o);
		break;
	case PB_BPF_GOTO: case PB_BPF_GOTOL: case PB_BPF_MAY_GOTO: case PB_BPF_IF_K:
	case PB_BPF_IF_X:
		jump(t, i, o);
		break;
	case PB_BPF_CALL_HELPER: case PB_BPF_CALL_PC: case PB_BPF_CALL_KFUNC:
		call(t, i, o, n);
		break;
	case PB_BPF_RETURN:
		pb_bpf_printf(t, "exit");
		break;
	default:
		atomic(t, i, o);
	}
}
