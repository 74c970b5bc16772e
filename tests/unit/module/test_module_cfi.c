/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Unusual and broken instructions of unwind tables. After an instruction that can't be interpreted,
 * both readers of rows say that the row is unknown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "module/elf/cfi.h"
#include "module/elf/cfi_ops.h"
#include "module/elf/cfi_rules.h"

#define START	0x1000
#define RSP	7	/* DWARF's numbers */
#define RBP	6

static const uint8_t entry[] = { CFA_def_cfa, RSP, 8, CFA_offset | PB_DWARF_RA, 1 };
static struct pb_cie cie = {
	.insns = entry, .insns_end = entry + sizeof(entry), .code_align = 1, .data_align = -8,
	.ra_reg = PB_DWARF_RA,
};

/* Checks the row at START + offset. cfa_off 0: the row must be unknown. */
static void expect_row(const uint8_t *insns, size_t size, unsigned offset, uint8_t dwarf_reg,
		       int cfa_off)
{
	struct pb_fde fde = {
		.start = START, .end = START + 0x100, .insns = insns, .insns_end = insns + size,
	};
	struct pb_cfi cfi = {
		.cies = { .v = &cie, .n = 1 }, .fdes = { .v = &fde, .n = 1 },
	};
	struct pb_rules_cursor rules = { .cfi = &cfi };
	struct pb_cfi_cursor cur;

	pb_cfi_start(&cur, &cfi, &fde);
	pb_cfi_advance(&cur, START + offset);
	const struct pb_rules *row = pb_rules_at(&rules, START + offset);

	if (!cfa_off) {
		assert_int_equal(cur.row.cfa_reg, PB_REG_NONE);
		assert_null(row);
		return;
	}
	assert_int_equal(cur.row.cfa_reg, dwarf_reg == RSP ? PB_REG_RSP : PB_REG_RBP);
	assert_int_equal(cur.row.cfa_off, cfa_off);
	assert_non_null(row);
	assert_int_equal(row->cfa.reg, dwarf_reg);
	assert_int_equal(row->cfa.value, cfa_off);
}

static void nested_states(void **state)
{
	uint8_t insns[64];

	for (unsigned depth = 1; depth <= PB_CFI_STACK + 1; depth++) {
		size_t n = 0;

		/* each state has another offset: 8, 16, ... */
		for (unsigned i = 1; i <= depth; i++) {
			insns[n++] = CFA_def_cfa_offset;
			insns[n++] = (uint8_t)(8 * i);
			insns[n++] = CFA_remember_state;
		}
		insns[n++] = CFA_def_cfa_offset;
		insns[n++] = 120;
		insns[n++] = CFA_advance_loc | 4;
		insns[n++] = CFA_restore_state;
		expect_row(insns, n, 2, RSP, 120);
		expect_row(insns, n, 4, RSP, depth > PB_CFI_STACK ? 0 : 8 * (int)depth);
	}
}

static void restored_without_a_state(void **state)
{
	static const uint8_t insns[] = { CFA_advance_loc | 4, CFA_restore_state };

	expect_row(insns, sizeof(insns), 3, RSP, 8);
	expect_row(insns, sizeof(insns), 4, RSP, 0);
}

/* The CFA is an expression, so it has neither a register nor an offset that could be changed. */
static void changed_after_an_expression(void **state)
{
	static const uint8_t insns[] = {
		CFA_def_cfa_expression, 2, 0x77, 24, CFA_advance_loc | 4, CFA_def_cfa_register, RBP,
		CFA_advance_loc | 4, CFA_def_cfa_offset, 16,
	};
	static const uint8_t replaced[] = {
		CFA_def_cfa_expression, 2, 0x77, 24, CFA_advance_loc | 4, CFA_def_cfa, RBP, 16,
	};

	expect_row(insns, sizeof(insns), 4, RSP, 0);
	expect_row(insns, sizeof(insns), 8, RSP, 0);
	expect_row(replaced, sizeof(replaced), 4, RBP, 16);
}

/* The instructions end in the middle of a number. */
static void cut_off(void **state)
{
	static const uint8_t insns[] = { CFA_advance_loc | 4, CFA_def_cfa_offset, 0x90 };

	expect_row(insns, sizeof(insns), 0, RSP, 8);
	expect_row(insns, sizeof(insns), 4, RSP, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested_states),
		cmocka_unit_test(restored_without_a_state),
		cmocka_unit_test(changed_after_an_expression),
		cmocka_unit_test(cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
