/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads whole rows of an unwind table: the CFA, and where each register is saved. cfi.c keeps only
 * the part of a row that the analysis needs. Context: any thread.
 */
#ifndef PB_MODULE_CFI_RULES_H
#define PB_MODULE_CFI_RULES_H
#include "module/elf/cfi.h"

#define PB_RULE_REGS	17	/* registers have DWARF's numbers; 16 is the return address */
#define PB_DWARF_RSP	7
#define PB_DWARF_RA	16

enum pb_rule_kind {
	PB_RULE_SAME,		/* the register has the same value as in the caller, or there is no
				 * rule */
	PB_RULE_UNDEFINED,
	PB_RULE_OFFSET,		/* the register is saved at CFA + value */
	PB_RULE_VAL_OFFSET,	/* the register's value is CFA + value */
	PB_RULE_REGISTER,	/* the register's value is in register `value`. If this is the CFA's
				 * rule, the CFA is register `reg` + value */
	PB_RULE_EXPR,		/* an expression gives the address where the register is saved. The
				 * expression has `value` bytes at `block` */
	PB_RULE_VAL_EXPR,	/* an expression gives the register's value. The expression has
				 * `value` bytes at `block` */
};

struct pb_rule {
	uint32_t kind, reg;	/* kind: enum pb_rule_kind. reg: only in the CFA's rule */
	int64_t value;
	const uint8_t *block;
};

/* A row. The struct has no padding, so rows may be compared as bytes. */
struct pb_rules {
	struct pb_rule cfa, regs[PB_RULE_REGS];
};

struct pb_rules_cursor {
	const struct pb_cfi *cfi;
	const struct pb_fde *fde;	/* its instructions are being executed; NULL: none yet */
	const struct pb_cie *cie;
	const uint8_t *p, *end;
	uint64_t last, loc;		/* last: the address in the last call of pb_rules_at().
					 * loc: the address that the executed instructions have
					 * reached */
	unsigned depth;
	bool lost;			/* the rest of the FDE's instructions cannot be
					 * interpreted */
	struct pb_rules now, initial, stack[PB_CFI_STACK];
};

/* Returns the row at an address. Returns NULL if the table has no row for it, or if the row can't
 * be computed. The call is fast if the address is in the same FDE as that of the previous call, and
 * not lower. */
const struct pb_rules *pb_rules_at(struct pb_rules_cursor *c, uint64_t addr);
#endif
