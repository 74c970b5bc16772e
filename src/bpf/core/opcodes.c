/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of operations, generated from the rows of opcodes.h, and the decoder. */
#include "bpf/core/opcodes.h"

const struct pb_bpf_opinfo pb_bpf_ops[PB_BPF_NR_OPS] = {
#define PB_BPF_X_ROW(name, form_, code_, value_, width_, symbol_) \
	[PB_BPF_OP_##name] = { .code = (code_), .form = PB_BPF_##form_, .width = (width_), \
			       .value = (value_), .symbol = symbol_ },
	PB_BPF_OPS(PB_BPF_X_ROW)
#undef PB_BPF_X_ROW
};

/* Returns the field that distinguishes operations of the same opcode. */
static int32_t selecting(const struct bpf_insn *insn)
{
	switch (BPF_CLASS(insn->code)) {
	case BPF_ALU: case BPF_ALU64:
		return BPF_OP(insn->code) == BPF_END ? insn->imm : insn->off;
	case BPF_STX:
		return BPF_MODE(insn->code) == BPF_ATOMIC ? insn->imm : 0;
	case BPF_JMP:
		return BPF_OP(insn->code) == BPF_CALL ||
		       BPF_OP(insn->code) == BPF_JCOND ? insn->src_reg : 0;
	default:
		return 0;
	}
}

enum pb_bpf_op pb_bpf_decode(const struct bpf_insn *insn)
{
#define KEY(code, value) ((uint64_t)(code) << 32 | (uint32_t)(value))
	switch (KEY(insn->code, selecting(insn))) {
#define PB_BPF_X_CASE(name, form, code, value, width, symbol) \
	case KEY(code, value): \
		return PB_BPF_OP_##name;
	PB_BPF_OPS(PB_BPF_X_CASE)
#undef PB_BPF_X_CASE
	}
	return PB_BPF_OP_NONE;
#undef KEY
}

/* The fields that a form uses: dst, src, off, imm. */
enum { DST = 1, SRC = 2, OFF = 4, IMM = 8 };

static const uint8_t named[] = {
	[PB_BPF_ALU_K] = DST | IMM, [PB_BPF_ALU_X] = DST | SRC, [PB_BPF_NEG] = DST,
	[PB_BPF_MOVSX] = DST | SRC, [PB_BPF_END] = DST, [PB_BPF_LD64] = DST | SRC | IMM,
	[PB_BPF_LD_ABS] = IMM, [PB_BPF_LD_IND] = SRC | IMM,
	[PB_BPF_LDX] = DST | SRC | OFF, [PB_BPF_LDSX] = DST | SRC | OFF,
	[PB_BPF_ST] = DST | OFF | IMM, [PB_BPF_STX] = DST | SRC | OFF,
	[PB_BPF_ATOMIC] = DST | SRC | OFF, [PB_BPF_FETCH] = DST | SRC | OFF,
	[PB_BPF_XCHANGE] = DST | SRC | OFF, [PB_BPF_COMPARE] = DST | SRC | OFF,
	[PB_BPF_GOTO] = OFF, [PB_BPF_GOTOL] = IMM, [PB_BPF_MAY_GOTO] = OFF,
	[PB_BPF_IF_K] = DST | OFF | IMM, [PB_BPF_IF_X] = DST | SRC | OFF,
	[PB_BPF_CALL_HELPER] = IMM, [PB_BPF_CALL_PC] = IMM, [PB_BPF_CALL_KFUNC] = IMM | OFF,
	[PB_BPF_RETURN] = OFF,	/* the kernel ignores this field */
};

bool pb_bpf_unused_are_zero(const struct bpf_insn *insn, enum pb_bpf_op op)
{
	const struct pb_bpf_opinfo *o = &pb_bpf_ops[op];
	unsigned has = named[o->form];

	/* the field that selecting() returns holds the operation's `value`, so it counts as used
	 * and need not be 0 */
	switch (BPF_CLASS(o->code)) {
	case BPF_ALU: case BPF_ALU64:
		has |= BPF_OP(o->code) == BPF_END ? IMM : OFF;
		break;
	case BPF_STX:
		has |= BPF_MODE(o->code) == BPF_ATOMIC ? IMM : 0;
		break;
	case BPF_JMP:
		has |= BPF_OP(o->code) == BPF_CALL || BPF_OP(o->code) == BPF_JCOND ? SRC : 0;
		break;
	}
	return (has & DST || !insn->dst_reg) && (has & SRC || !insn->src_reg) &&
	       (has & OFF || !insn->off) && (has & IMM || !insn->imm);
}
