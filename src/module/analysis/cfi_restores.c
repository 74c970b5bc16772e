/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks each `mov` from a register to rsp after which the CFA is based on rsp: the CFI's next row
 * says that the CFA is rsp + N. The CFI is believed only if, on all paths to the `mov`, the
 * register is known to hold CFA - N: a `mov` has copied rsp to the register, or a `lea` has set the
 * register to rsp plus a constant. The sweep (cfi_check.h) can't check this. It passes over the
 * code once, and follows neither branches nor other writes to the register. If the check fails, the
 * exits of the unit (the code of one FDE) aren't hooked.
 *
 * The check is a dataflow analysis of one register in one unit. It passes over the unit in the
 * order of addresses until nothing changes. In practice this takes two or three passes.
 */
#include <Zydis/Zydis.h>
#include "module/analysis/exits_priv.h"

/* A state is the CFA's offset from the register's value, or one of these values. */
#define UNSET		INT64_MIN	/* control doesn't come here */
#define UNKNOWN		INT64_MAX

/* Registers that a callee preserves: rbx, rbp, r12 to r15. */
#define PRESERVED	(1u << 3 | 1u << 5 | 0xfu << 12)

struct flow {
	struct pb_an *an;
	const struct pb_fde *fde;
	const struct pb_range *r;
	uint32_t unit;
	uint8_t reg;
	int64_t *in;		/* for each byte of the unit: the state before the instruction */
	int64_t elsewhere;	/* the state after calls and before jumps through registers and
				 * memory: a landing pad, or a table's target, has this state */
	bool again;		/* a state that this pass has already used has changed */
	ZydisDecoder decoder;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

static bool is_reg(const ZydisDecodedOperand *o, ZydisRegister reg)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER && o->reg.value == reg;
}

/* Merges the state `from` into *to. Returns whether *to has changed. */
static bool merge(int64_t *to, int64_t from)
{
	int64_t was = *to;

	if (*to == UNSET)
		*to = from;
	else if (from != UNSET && *to != from)
		*to = UNKNOWN;
	return *to != was;
}

/* True if the row at addr comes some instructions too late (cfi_check.h), or isn't based on rsp, or
 * if the search takes too long (pb_exit_work()). */
static bool is_doubtful(const struct flow *f, uint64_t addr, const struct pb_cfi_row *row)
{
	const struct pb_an *an = f->an;

	if (row->cfa_reg != PB_REG_RSP || pb_exit_work(f->an, an->lags.n))
		return true;
	for (size_t i = 0; i < an->lags.n; i++)
		if (addr - an->lags.v[i].from < an->lags.v[i].to - an->lags.v[i].from)
			return true;
	return false;
}

/* Returns the state after the instruction at addr. */
static int64_t after(const struct flow *f, uint64_t addr, const struct pb_cfi_row *row, int64_t now)
{
	ZydisRegister reg = ZYDIS_REGISTER_RAX + f->reg;
	bool lea = f->insn.mnemonic == ZYDIS_MNEMONIC_LEA;

	if (f->insn.meta.category == ZYDIS_CATEGORY_CALL)
		return PRESERVED >> f->reg & 1 ? now : UNKNOWN;
	if (is_reg(&f->op[0], reg) &&
	    ((f->insn.mnemonic == ZYDIS_MNEMONIC_MOV && is_reg(&f->op[1], ZYDIS_REGISTER_RSP)) ||
	     (lea && f->op[1].mem.base == ZYDIS_REGISTER_RSP &&
	      f->op[1].mem.index == ZYDIS_REGISTER_NONE)))
		return is_doubtful(f, addr, row) ? UNKNOWN :
		       row->cfa_off - (lea ? f->op[1].mem.disp.value : 0);
	for (unsigned k = 0; k < f->insn.operand_count; k++)
		if (f->op[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    f->op[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						     f->op[k].reg.value) == reg)
			return UNKNOWN;
	return now;
}

/* True if control may come to addr from outside the unit: a symbol or the unit begins there, a
 * pointer or a call leads there, or another unit's jump does. */
static bool is_entered(const struct flow *f, uint64_t addr)
{
	size_t name = pb_addr_lower(&f->an->barriers, addr);
	size_t jump = pb_cross_jump_lower(f->an, addr);

	return pb_bit_test(f->r->called, addr - f->r->addr) ||
	       (name < f->an->barriers.n && f->an->barriers.v[name] == addr) ||
	       (jump < f->an->cross_jumps.n && f->an->cross_jumps.v[jump].to == addr);
}

/* Merges the state into the instruction at `target`. If no instruction begins at `target`, the
 * branch skips a lock prefix: the instruction begins one byte earlier. */
static void branch(struct flow *f, uint64_t addr, uint64_t target, int64_t state)
{
	uint64_t off = target - f->fde->start;

	if (off >= f->fde->end - f->fde->start)
		return;
	if (off && !pb_bit_test(f->r->starts, target - f->r->addr))
		off--;
	if (merge(&f->in[off], state) && target <= addr)
		f->again = true;
}

/* Handles the instruction at addr. `through` is the state with which control falls through into it.
 * Returns the state with which control falls through into the next instruction. */
static int64_t step(struct flow *f, uint64_t addr, const struct pb_cfi_row *row, int64_t through)
{
	int64_t *in = &f->in[addr - f->fde->start], out;
	uint64_t off = addr - f->r->addr, end;
	bool call;

	merge(in, is_entered(f, addr) ? UNKNOWN : through);
	if (pb_bit_test(f->r->otherwise, off))
		merge(in, f->elsewhere);
	if (*in == UNSET)
		return UNSET;
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&f->decoder, f->r->bytes + off, f->r->size - off,
						 &f->insn, f->op)))
		return UNKNOWN;
	out = after(f, addr, row, *in);
	end = addr + f->insn.length;
	call = f->insn.meta.category == ZYDIS_CATEGORY_CALL;
	if (f->insn.raw.imm[0].is_relative && !call)
		branch(f, addr, end + (uint64_t)f->insn.raw.imm[0].value.s, out);
	else if (call || f->insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
		f->again |= merge(&f->elsewhere, out);
	return f->insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
	       f->insn.meta.category == ZYDIS_CATEGORY_RET ? UNSET : out;
}

/* Finds the states of the unit. False: there is no memory, or this takes too long. */
static bool find_states(struct flow *f)
{
	uint64_t size = f->fde->end - f->fde->start;
	struct pb_cfi_cursor cur;

	f->r = pb_range_find(f->an, f->fde->start);
	if (!f->r || f->fde->end - f->r->addr > f->r->size || pb_exit_work(f->an, size))
		return false;
	f->in = malloc(size * sizeof(*f->in));
	if (!f->in)
		return false;
	for (uint64_t i = 0; i < size; i++)
		f->in[i] = UNSET;
	f->elsewhere = UNSET;
	do {
		int64_t through = UNSET;

		if (pb_exit_work(f->an, 8 * size))
			return false;
		f->again = false;
		pb_cfi_start(&cur, &f->an->cfi, f->fde);
		for (uint64_t at = f->fde->start; at < f->fde->end; at++) {
			if (!pb_bit_test(f->r->starts, at - f->r->addr))
				continue;
			pb_cfi_advance(&cur, at);
			through = step(f, at, &cur.row, through);
		}
	} while (f->again);
	return true;
}

void pb_restores_check(struct pb_an *an)
{
	struct flow f = { .an = an };
	bool ok = false;

	ZydisDecoderInit(&f.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t i = 0; i < an->restores.n; i++) {
		const struct pb_restore *m = &an->restores.v[i];
		int64_t is;

		/* the unit's exits are not hooked in any case */
		if (an->units[m->unit])
			continue;
		if (!f.fde || f.unit != m->unit || f.reg != m->reg) {
			free(f.in);
			f.in = NULL;
			f.unit = m->unit;
			f.reg = m->reg;
			f.fde = &an->cfi.fdes.v[m->unit];
			ok = find_states(&f);
		}
		is = ok ? f.in[m->addr - f.fde->start] : UNKNOWN;
		if (is == UNKNOWN || (is != UNSET && is != m->off))
			an->units[m->unit] |= 1u << PB_INEXIT_CFI;
	}
	free(f.in);
}
