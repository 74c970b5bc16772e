/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Executes the instructions of an FDE up to an address, for the unwind table of stubs. The result
 * is the rules for the CFA and for all registers. (cfi.c keeps only the part of a row that the
 * analysis needs.) The cursor goes forward in one FDE. If pb_rules_at() gets a lower address than
 * in the previous call, or an address after this FDE, the cursor restarts at the beginning of the
 * FDE that covers the address.
 */
#include "module/elf/cfi_rules.h"
#include <string.h>
#include "module/elf/cfi_ops.h"
#include "module/elf/dwarf_bytes.h"

static void set(struct pb_rules_cursor *c, uint64_t reg, uint32_t kind, int64_t value,
		const uint8_t *block)
{
	if (reg < PB_RULE_REGS)
		c->now.regs[reg] = (struct pb_rule){ .kind = kind, .value = value, .block = block };
}

static void restore(struct pb_rules_cursor *c, uint64_t reg)
{
	if (reg < PB_RULE_REGS)
		c->now.regs[reg] = c->initial.regs[reg];
}

static int64_t factored(const struct pb_rules_cursor *c, int64_t n)
{
	return (int64_t)((uint64_t)n * (uint64_t)c->cie->data_align);
}

static const uint8_t *block(struct bytes *b, int64_t *len)
{
	uint64_t n = uleb(b);
	const uint8_t *at = b->p;

	if (n > (uint64_t)(b->end - b->p)) {
		b->dry = true;
		n = 0;
	}
	b->p += n;
	*len = (int64_t)n;
	return at;
}

static void put_cfa(struct pb_rules_cursor *c, uint64_t reg, int64_t off)
{
	c->now.cfa = (struct pb_rule){
		.kind = PB_RULE_REGISTER, .reg = (uint32_t)reg, .value = off };
}

/* Changes the register or the offset. Only a CFA that is a register plus an offset has them. */
static void change_cfa(struct pb_rules_cursor *c, uint64_t reg, int64_t off)
{
	c->lost |= c->now.cfa.kind != PB_RULE_REGISTER;
	put_cfa(c, reg, off);
}

/* Executes a rule for the CFA. False: op is not such a rule. */
static bool frame(struct pb_rules_cursor *c, struct bytes *b, uint8_t op)
{
	const uint8_t *at;
	uint64_t reg;
	int64_t n;

	switch (op) {
	case CFA_def_cfa:
		reg = uleb(b);
		put_cfa(c, reg, (int64_t)uleb(b));
		return true;
	case CFA_def_cfa_sf:
		reg = uleb(b);
		put_cfa(c, reg, factored(c, sleb(b)));
		return true;
	case CFA_def_cfa_register:
		change_cfa(c, uleb(b), c->now.cfa.value);
		return true;
	case CFA_def_cfa_offset:
		change_cfa(c, c->now.cfa.reg, (int64_t)uleb(b));
		return true;
	case CFA_def_cfa_offset_sf:
		change_cfa(c, c->now.cfa.reg, factored(c, sleb(b)));
		return true;
	case CFA_def_cfa_expression:
		at = block(b, &n);
		c->now.cfa = (struct pb_rule){ .kind = PB_RULE_EXPR, .value = n, .block = at };
		return true;
	}
	return false;
}

/* Executes a rule for a register. False: op is not such a rule. */
static bool reg_rule(struct pb_rules_cursor *c, struct bytes *b, uint8_t op)
{
	uint64_t reg = uleb(b);
	const uint8_t *at;
	int64_t n;

	switch (op) {
	case CFA_offset_extended:
		set(c, reg, PB_RULE_OFFSET, factored(c, (int64_t)uleb(b)), NULL);
		return true;
	case CFA_offset_extended_sf:
		set(c, reg, PB_RULE_OFFSET, factored(c, sleb(b)), NULL);
		return true;
	case CFA_GNU_negative_offset_extended:
		set(c, reg, PB_RULE_OFFSET, -factored(c, (int64_t)uleb(b)), NULL);
		return true;
	case CFA_val_offset:
		set(c, reg, PB_RULE_VAL_OFFSET, factored(c, (int64_t)uleb(b)), NULL);
		return true;
	case CFA_val_offset_sf:
		set(c, reg, PB_RULE_VAL_OFFSET, factored(c, sleb(b)), NULL);
		return true;
	case CFA_register:
		set(c, reg, PB_RULE_REGISTER, (int64_t)uleb(b), NULL);
		return true;
	case CFA_expression: case CFA_val_expression:
		at = block(b, &n);
		set(c, reg, op == CFA_expression ? PB_RULE_EXPR : PB_RULE_VAL_EXPR, n, at);
		return true;
	case CFA_undefined: case CFA_same_value:
		set(c, reg, op == CFA_undefined ? PB_RULE_UNDEFINED : PB_RULE_SAME, 0, NULL);
		return true;
	case CFA_restore_extended:
		restore(c, reg);
		return true;
	}
	return false;
}

static void extended(struct pb_rules_cursor *c, struct bytes *b, uint8_t op)
{
	switch (op) {
	case CFA_nop:
		return;
	case CFA_advance_loc1: case CFA_advance_loc2: case CFA_advance_loc4:
		c->loc += fixed(b, 1u << (op - CFA_advance_loc1)) * c->cie->code_align;
		return;
	case CFA_remember_state:
		if (c->depth < PB_CFI_STACK)
			c->stack[c->depth] = c->now;
		c->depth++;
		return;
	case CFA_restore_state:
		if (c->depth && --c->depth < PB_CFI_STACK)
			c->now = c->stack[c->depth];
		else		/* the state was never saved, or there was no room for it */
			c->lost = true;
		return;
	case CFA_GNU_args_size:
		uleb(b);
		return;
	}
	/* if op is set_loc or unknown, the rest of the instructions cannot be interpreted */
	if (!frame(c, b, op) && (op < CFA_offset_extended || !reg_rule(c, b, op)))
		c->lost = true;
}

static void execute(struct pb_rules_cursor *c, uint64_t addr)
{
	struct bytes b = { c->p, c->end, false };

	while (b.p < b.end && c->loc <= addr && !c->lost) {
		uint8_t op = *b.p++;

		switch (op & 0xc0) {
		case CFA_advance_loc:
			c->loc += (op & 0x3f) * c->cie->code_align;
			break;
		case CFA_offset:
			set(c, op & 0x3f, PB_RULE_OFFSET, factored(c, (int64_t)uleb(&b)), NULL);
			break;
		case CFA_restore:
			restore(c, op & 0x3f);
			break;
		default:
			extended(c, &b, op);
		}
		c->lost |= b.dry;
	}
	c->p = b.p;
}

static void begin(struct pb_rules_cursor *c, const struct pb_fde *f)
{
	c->fde = f;
	c->cie = &c->cfi->cies.v[f->cie];
	c->lost = c->cie->ra_reg != PB_DWARF_RA;
	c->depth = 0;
	c->loc = 0;
	memset(&c->now, 0, sizeof(c->now));
	memset(&c->initial, 0, sizeof(c->initial));
	c->p = c->cie->insns;
	c->end = c->cie->insns_end;
	execute(c, UINT64_MAX - 1);
	c->initial = c->now;
	c->depth = 0;
	c->p = f->insns;
	c->end = f->insns_end;
	c->last = c->loc = f->start;
}

const struct pb_rules *pb_rules_at(struct pb_rules_cursor *c, uint64_t addr)
{
	if (!c->fde || addr < c->last || addr >= c->fde->end) {
		long i = c->cfi ? pb_cfi_find(c->cfi, addr) : -1;

		if (i < 0)
			return NULL;
		begin(c, &c->cfi->fdes.v[i]);
	}
	c->last = addr;
	execute(c, addr);
	return c->lost ? NULL : &c->now;
}
