/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares the CFI with instructions that change rsp (push, pop, add, sub, lea, mov). This is done
 * during the sweep, which decodes all code once (stages.h). If the CFI contradicts the code, it
 * doesn't prove where the return address is.
 *
 * Some compilers write a row of the CFI some instructions too late. For example, clang may move an
 * `add` to rsp before a branch, and leave the row after the branch. The rows of the instructions
 * between the two *lag*: they still have the former offset. Rows that lag do no harm if no exit is
 * among them, and if the rows are right again wherever control goes from them. Whether a branch
 * leads to such rows is known only after the sweep. So the sweep notes these rows in a list of
 * struct pb_lag, and pb_lags_check() checks them afterwards.
 *
 * Context: the sweep's threads, each with its own struct pb_cfi_check, except pb_lags_check().
 */
#ifndef PB_MODULE_CFI_CHECK_H
#define PB_MODULE_CFI_CHECK_H
#include <stdbool.h>
#include <stdint.h>
#include "module/analysis/insn.h"
#include "module/analysis/stages.h"

#define PB_CFA_UNKNOWN	INT64_MAX

struct pb_cfi_check {
	uint64_t at;		/* the next instruction to compare; 0: none */
	int64_t off;		/* at `at`, the CFA must be rsp + off */
	int64_t other_off;	/* or rsp + other_off. PB_CFA_UNKNOWN: there is no other offset */
	uint64_t lags_from;	/* the rows lag since this address; 0: the last row was right */
	int64_t from_off;	/* at lags_from, the CFA is rsp + from_off by the code. The row has
				 * another offset */
	/* for each register: CFA - register, if the unit has copied rsp to the register by mov
	 * (copied), or has taken an address on the stack by lea (taken). PB_CFA_UNKNOWN: it
	 * hasn't */
	int64_t copied[16], taken[16];
	uint64_t moved_at;	/* address of the mov to rsp before `at`, from the register `moved`;
				 * 0: there is none */
	uint8_t moved;
	pb_lag_vec lags;
	pb_restore_vec restores;
};

/* Begins a unit. */
void pb_cfi_check_begin(struct pb_cfi_check *c);
/* Compares the row with the effect of the instructions before this one, and notes the effect of
 * this instruction. Must be called for each instruction at c->at, and for all instructions that may
 * change rsp. False: the CFI contradicts the code. */
bool pb_cfi_check_insn(struct pb_cfi_check *c, const struct pb_insn *i, uint64_t addr,
		       const struct pb_cfi_row *row, uint32_t unit);
/* Ends straight-line code. False: the rows lag. */
bool pb_cfi_check_end(struct pb_cfi_check *c);
/* In cfi_lags.c: marks each unit with rows that lag as bad (PB_INEXIT_CFI), unless it is proven
 * that these rows do no harm. Must be called after the sweep. */
void pb_lags_check(struct pb_an *an);
#endif
