/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decides whether rows that lag (cfi_check.h) do any harm. The sweep has followed the CFA's offset
 * from rsp without the rows, by means of its small decoder (insn.h). This file decodes the same
 * instructions in full, and follows the offset again. If one of them may use the return slot, or
 * changes rsp in an unknown way, the exits of the unit (the code of one FDE) are not hooked.
 */
#include <Zydis/Zydis.h>
#include "module/analysis/cfi_check.h"
#include "module/analysis/exits_priv.h"

/* An operand that begins less than this many bytes below the return slot counts as near the slot:
 * an index into an array, or an operand's true size, may not be known. */
#define NEAR		64

struct decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

static bool is_stack_pointer(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg) ==
	       ZYDIS_REGISTER_RSP;
}

static bool writes_stack_pointer(const struct decoded *d)
{
	for (unsigned k = 0; k < d->insn.operand_count; k++)
		if (d->op[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    d->op[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    is_stack_pointer(d->op[k].reg.value))
			return true;
	return false;
}

/* True if an operand of the instruction may be the return slot, or may be the slot's address.
 * The CFA is rsp + off before the instruction. The sweep looks for such instructions by the rows,
 * and misses them where the rows lag. */
static bool near_slot(const struct decoded *d, int64_t off)
{
	for (unsigned k = 0; k < d->insn.operand_count_visible; k++) {
		const ZydisDecodedOperandMem *m = &d->op[k].mem;
		int64_t size = d->op[k].size / 8;

		if (d->op[k].type != ZYDIS_OPERAND_TYPE_MEMORY || !is_stack_pointer(m->base))
			continue;
		if (m->index != ZYDIS_REGISTER_NONE ||
		    m->disp.value + (size > NEAR ? size : NEAR) > off - 8)
			return true;
	}
	return false;
}

/* Sets *by to the number of bytes that the instruction adds to the stack. The instruction writes
 * rsp. False: unknown. */
static bool growth(const struct decoded *d, int64_t *by)
{
	const ZydisDecodedOperand *to = &d->op[0], *from = &d->op[1];

	switch (d->insn.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		*by = 8;
		return d->insn.operand_width == 64;
	case ZYDIS_MNEMONIC_POP:
		*by = -8;
		return d->insn.operand_width == 64 &&
		       (to->type != ZYDIS_OPERAND_TYPE_REGISTER ||
			!is_stack_pointer(to->reg.value));
	case ZYDIS_MNEMONIC_ADD: case ZYDIS_MNEMONIC_SUB:
		*by = d->insn.mnemonic == ZYDIS_MNEMONIC_SUB ? from->imm.value.s :
							       -from->imm.value.s;
		return to->size == 64 && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	case ZYDIS_MNEMONIC_LEA:
		*by = -from->mem.disp.value;
		return to->size == 64 && from->mem.base == ZYDIS_REGISTER_RSP &&
		       from->mem.index == ZYDIS_REGISTER_NONE;
	default:
		return false;
	}
}

/* True if the instructions of *l change rsp as the sweep has assumed, and don't use the return
 * slot. */
static bool follows(const struct pb_lag *l, const struct pb_range *r)
{
	int64_t off = l->from_off, by;
	ZydisDecoder decoder;
	struct decoded d;
	uint64_t at;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (at = l->from; at < l->to; at += d.insn.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, r->bytes + (at - r->addr),
							 r->size - (at - r->addr), &d.insn,
							 d.op)) ||
		    near_slot(&d, off))
			return false;
		if (!writes_stack_pointer(&d))
			continue;
		/* below 8, the return address is popped, and a push could write its slot */
		if (!growth(&d, &by) || off + by < 8)
			return false;
		off += by;
	}
	return at == l->to && off == l->off;
}

static bool is_right(struct pb_an *an, const struct pb_lag *l)
{
	const struct pb_fde *fde = &an->cfi.fdes.v[l->unit];
	const struct pb_range *r = pb_range_find(an, l->from);
	struct pb_cfi_cursor cur;

	if (!r || l->to - r->addr > r->size ||
	    pb_exit_work(an, 8 * (l->to - l->from) + (uint64_t)(fde->insns_end - fde->insns)))
		return false;
	for (uint64_t at = l->from; at < l->to; at++)
		if (pb_bit_test(r->reached, at - r->addr))
			return false;
	if (!follows(l, r))
		return false;
	if (!l->target)
		return true;
	if (l->target - fde->start >= fde->end - fde->start)
		return false;
	pb_cfi_start(&cur, &an->cfi, fde);
	pb_cfi_advance(&cur, l->target);
	return cur.row.cfa_reg == PB_REG_RSP && cur.row.cfa_off == l->off && !cur.row.ra_moved;
}

void pb_lags_check(struct pb_an *an)
{
	for (size_t i = 0; i < an->lags.n; i++)
		if (!is_right(an, &an->lags.v[i]))
			an->units[an->lags.v[i].unit] |= 1u << PB_INEXIT_CFI;
}
