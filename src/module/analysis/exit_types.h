/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the stages of an analysis describe exits: the instructions that leave a function, and the
 * windows that hold these instructions. doc/design/returns.md has the rules and their reasons.
 *
 * A unit is the code of one FDE. A function's exits are the exits of its own unit, and of all units
 * that its code jumps into.
 *
 * Context: any thread; part of one analysis (stages.h).
 */
#ifndef PB_MODULE_EXIT_TYPES_H
#define PB_MODULE_EXIT_TYPES_H
#include <stdbool.h>
#include <stdint.h>
#include "abi/analysis.h"
#include "module/elf/vec.h"

/* Values of pb_fn_exit.kind in addition to enum pb_exit_kind. */
enum {
	PB_EXIT_FALL = PB_NR_EXIT_KINDS, /* control falls through the end of the unit */
	PB_EXIT_UNDECODED,	/* bytes that are no instruction */
};

struct pb_fn_exit {
	uint64_t addr;
	uint64_t run;		/* start of the straight-line code that ends with this exit */
	uint64_t target;	/* JMP, JCC, FALL: the target */
	uint32_t unit;		/* the FDE's index */
	int32_t cfa_off;	/* before the instruction, the CFA is cfa_reg + cfa_off */
	uint8_t cfa_reg;	/* PB_REG_*, or the number of another register */
	bool gone;		/* the return address is on top of the stack when the instruction
				 * runs */
	bool live;		/* control can reach the instruction */
	uint8_t kind, len;
	bool exit;		/* the instruction leaves the function: a return or a tail jump */
	bool after_call;	/* FALL: the unit's last instruction is a call. Most such calls
				 * never return */
	bool displaced;		/* the instruction is displaced for a code slot, and the copy of the
				 * exit is not hooked */
	uint8_t how;		/* enum pb_exit_how */
	uint8_t why;		/* why the exit is not hooked: enum pb_inexit */
	uint32_t window;	/* the index of the exit's window */
};
typedef PB_VEC(struct pb_fn_exit) pb_exit_vec;

/* A run of instructions at which the CFI still has the CFA of an earlier instruction, because the
 * compiler wrote the change of the CFA too late (cfi_check.h). The first instruction is at the
 * address `from`, and the last one ends at the address `to`. The CFA is rsp + from_off before they
 * run, and rsp + off when all of them have run. */
struct pb_lag {
	uint64_t from, to;
	uint64_t target;	/* the last of the instructions is a conditional jump to this
				 * address; 0: no jump */
	int64_t from_off, off;
	uint32_t unit;
};
typedef PB_VEC(struct pb_lag) pb_lag_vec;

/* A `mov` from a register to rsp (cfi_restores.c). */
struct pb_restore {
	uint64_t addr;
	int64_t off;		/* according to the CFI, the CFA is rsp + off after the mov */
	uint32_t unit;
	uint8_t reg;
};
typedef PB_VEC(struct pb_restore) pb_restore_vec;

/* Code of the unit `from` continues in the unit `to`. */
struct pb_exit_edge {
	uint32_t from, to;
};
typedef PB_VEC(struct pb_exit_edge) pb_edge_vec;

/* A window that holds exits. It isn't known yet whether a function needs the window. */
struct pb_an_window {
	uint64_t start;
	uint8_t len;
	uint8_t how;		/* enum pb_exit_how, except JOINED */
	uint8_t second_len;	/* CODE_SLOT, SHARED, and ENTRY if the entry has a code slot: length
				 * of the code that is displaced for the slot or for the second
				 * jump. The recipe for this code follows the window's recipe */
	int16_t via;		/* offset of the slot from the window; 0: no slot */
	int32_t fn;		/* ENTRY: the function's index. Other kinds: -1 */
	int32_t on;		/* NEXT: index of the window of exits that has the second jump
				 * (exit_shared.c); -1: an entry's window has the second jump.
				 * Other kinds: -1 */
	uint32_t recipe;
};

/* The tables of exits, in the form that they have in the file (abi/analysis.h). */
struct pb_exit_tables {
	PB_VEC(struct pb_exit_window) windows;
	PB_VEC(struct pb_window_exit) exits;
	PB_VEC(uint32_t) leaves, left_by;
};
#endif
