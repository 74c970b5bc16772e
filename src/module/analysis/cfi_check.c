/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares the CFI with the code (cfi_check.h). If an instruction changes rsp by a constant, the
 * check takes the CFA's offset from rsp in the row before the instruction, and adds the change. The
 * row after the instruction must have the resulting offset. If it has another one, the check
 * continues with its own offset, without the rows, until a row agrees.
 */
#include "module/analysis/cfi_check.h"
#include "module/analysis/exits_priv.h"

void pb_cfi_check_begin(struct pb_cfi_check *c)
{
	for (unsigned i = 0; i < 16; i++)
		c->copied[i] = c->taken[i] = PB_CFA_UNKNOWN;
}

/* True if the instruction has an operand or an address with the base rsp and without an index. */
static bool based_on_rsp(const struct pb_insn *i)
{
	return i->has_modrm && i->mod != 3 && i->rm == 4 && i->sib_base == PB_REG_RSP &&
	       i->sib_index == 4 && !(i->rex & (PB_INSN_REX_B | PB_INSN_REX_X));
}

/* Sets *by to the number of bytes that the instruction adds to the stack. False: unknown. */
static bool stack_growth(const struct pb_insn *i, int64_t *by)
{
	switch (i->what) {
	case PB_INSN_PUSH:
		*by = 8;
		return true;
	case PB_INSN_POP:
		*by = -8;
		return true;
	case PB_INSN_ADD: case PB_INSN_SUB:
		*by = i->what == PB_INSN_SUB ? (int64_t)i->imm[0] : -(int64_t)i->imm[0];
		return i->imm_size[0] && i->has_modrm && i->mod == 3 && i->rm == PB_REG_RSP &&
		       !(i->rex & PB_INSN_REX_B);
	case PB_INSN_LEA:
		*by = -i->disp;
		return i->reg == PB_REG_RSP && !(i->rex & PB_INSN_REX_R) && based_on_rsp(i);
	default:
		return false;
	}
}

/*
 * True if the instruction sets rsp from another register or from memory. The CFA's offset is then
 * unknown, unless this unit has copied rsp, or an address on the stack, to that register. If it has
 * done both, the next row may have either offset: the order of addresses doesn't show which copy
 * came last. The function also notes such copies. `now` is the CFA's offset from rsp.
 */
static bool moves_stack_pointer(struct pb_cfi_check *c, const struct pb_insn *i, int64_t now)
{
	unsigned reg = i->reg | (i->rex & PB_INSN_REX_R) << 1;
	unsigned rm = i->rm | (i->rex & PB_INSN_REX_B) << 3;
	bool from = i->opcode == PB_INSN_MOV_FROM_REG;

	if (i->what == PB_INSN_LEA && based_on_rsp(i))
		c->taken[reg] = now - i->disp;
	if (!i->has_modrm || !i->legacy || (!from && i->opcode != PB_INSN_MOV_TO_REG))
		return false;
	if (i->mod == 3 && (from ? reg : rm) == PB_REG_RSP)
		c->copied[from ? rm : reg] = now;
	if ((from ? rm : reg) != PB_REG_RSP || (from && i->mod != 3))
		return false;
	c->off = i->mod == 3 ? c->copied[from ? reg : rm] : PB_CFA_UNKNOWN;
	c->other_off = i->mod == 3 ? c->taken[from ? reg : rm] : PB_CFA_UNKNOWN;
	c->moved = (uint8_t)(from ? reg : rm);
	return true;
}

static void note_lag(struct pb_cfi_check *c, uint64_t to, uint64_t target, uint32_t unit)
{
	pb_vec_push(&c->lags, (struct pb_lag){ .from = c->lags_from, .to = to, .target = target,
					       .from_off = c->from_off, .off = c->off,
					       .unit = unit });
}

/* Notes the mov to rsp before this row, with the offset that it must have set. This is c->other_off
 * if the row has that offset, and otherwise c->off. (If the row has neither, the row lags.) */
static void note_restore(struct pb_cfi_check *c, const struct pb_cfi_row *row, uint32_t unit)
{
	bool other = row->cfa_off == c->other_off;

	pb_vec_push(&c->restores, (struct pb_restore){
		.addr = c->moved_at, .off = other ? c->other_off : c->off, .unit = unit,
		.reg = c->moved });
	c->moved_at = 0;
}

/* Handles an instruction whose row has another offset than c->off. False: the rows don't only
 * lag. */
static bool lag(struct pb_cfi_check *c, const struct pb_insn *i, uint64_t addr, uint32_t unit)
{
	if (c->off == PB_CFA_UNKNOWN || c->other_off != PB_CFA_UNKNOWN)
		return false;
	if (!c->lags_from) {
		c->lags_from = addr;
		c->from_off = c->off;
	}
	if (i->what == PB_INSN_RET || i->what == PB_INSN_JMP || i->what == PB_INSN_CALL)
		return false;
	if (i->relative)
		note_lag(c, addr + i->length, addr + i->length + i->imm[0], unit);
	c->at = addr + i->length;
	return true;
}

bool pb_cfi_check_insn(struct pb_cfi_check *c, const struct pb_insn *i, uint64_t addr,
		       const struct pb_cfi_row *row, uint32_t unit)
{
	bool compare = c->at == addr, lags;
	int64_t now = row->cfa_off, by;

	c->at = 0;
	if (row->cfa_reg != PB_REG_RSP)
		return pb_cfi_check_end(c);
	if (compare && c->moved_at)
		note_restore(c, row, unit);
	lags = compare && row->cfa_off != c->off && row->cfa_off != c->other_off;
	if (lags) {
		if (!lag(c, i, addr, unit))
			return false;
		now = c->off;
	} else if (c->lags_from) {
		note_lag(c, addr, 0, unit);
		c->lags_from = 0;
	}
	if (stack_growth(i, &by)) {
		c->at = addr + i->length;
		c->off = now + by;
		c->other_off = PB_CFA_UNKNOWN;
	} else if (moves_stack_pointer(c, i, now)) {
		c->at = addr + i->length;
		c->moved_at = addr;
	}
	return true;
}

bool pb_cfi_check_end(struct pb_cfi_check *c)
{
	bool lags = c->lags_from;

	c->at = c->lags_from = c->moved_at = 0;
	return !lags;
}
