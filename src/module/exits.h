/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where functions are left, and whether all of a function's exits can be hooked
 * where they stand. The rules and their reasons: doc/design/returns.md.
 *
 * A unit is the code of one FDE. A function's exits are those of its own unit
 * and of all units that its code jumps into.
 *
 * Context: any thread; part of one analysis (module_priv.h).
 */
#ifndef PB_MODULE_EXITS_H
#define PB_MODULE_EXITS_H
#include <stdbool.h>
#include <stdint.h>
#include "module/vec.h"

enum pb_exit_kind {
	PB_EXIT_RET,		/* ret, ret N, rep ret, bnd ret */
	PB_EXIT_JMP,		/* out of its unit, to a known address */
	PB_EXIT_JCC,		/* the same, conditional */
	PB_EXIT_INDIRECT,	/* jmp through a register or memory */
	PB_EXIT_FALL,		/* the unit's last instruction runs on into what follows */
	PB_EXIT_UNDECODED,	/* bytes that are no instruction */
};

/* How an exit is hooked. */
#define PB_EXIT_HOW_LIST(X) \
	X(NONE,   "not hooked") \
	X(WINDOW, "a window of its own") \
	X(PADDED, "a window that reaches into padding") \
	X(JOINED, "in the window before it, of another exit") \
	X(ENTRY,  "in the copy of its function's entry") \
	X(HOLE,   "a short jump into padding") \
	X(DUG,    "a short jump into a hole dug into code") \
	X(RIDES,  "a jump that has its displacement in common with the next one")

enum pb_exit_how {
#define X(name, text) PB_EXIT_##name,
	PB_EXIT_HOW_LIST(X)
#undef X
	PB_NR_EXIT_HOW
};

/* Why a function's exits aren't hooked. */
#define PB_INEXIT_LIST(X) \
	X(NOT,      "all exits hooked") \
	X(REFUSED,  "its entry isn't hooked either") \
	X(UNWIND,   "no unwind table") \
	X(DECODE,   "its code can't be decoded for certain") \
	X(CFI,      "the unwind table contradicts its pushes and pops") \
	X(UNPROVEN, "a return, and no proof that the return address is on top") \
	X(FAR,      "a far return") \
	X(COMPUTED, "a jump to a computed address") \
	X(WRITES,   "its return address is written to") \
	X(FRAME,    "a jump out of it with its frame in place") \
	X(LOST,     "a jump to what isn't known to be code") \
	X(FALLS,    "runs on into what isn't known to be code") \
	X(LIMIT,    "too much to follow") \
	X(SHORT,    "no room for a jump at an exit") \
	X(HOLE,     "no hole within reach of an exit")

enum pb_inexit {
#define X(name, text) PB_INEXIT_##name,
	PB_INEXIT_LIST(X)
#undef X
	PB_NR_INEXIT
};

struct pb_fn_exit {
	uint64_t addr;
	uint64_t run;		/* where the run of instructions begins that leads here */
	uint64_t target;	/* JMP, JCC, FALL: where to */
	uint32_t unit;		/* the FDE's index */
	int32_t cfa_off;
	uint8_t cfa_reg;
	bool gone;		/* the return address is on top of the stack */
	bool live;		/* control can come here */
	uint8_t kind, len;
	bool exit;		/* it is one: a return or a tail jump */
	uint8_t how;
	uint8_t why;		/* where it isn't hooked: enum pb_inexit */
	uint32_t window;	/* the index of its window */
};
typedef PB_VEC(struct pb_fn_exit) pb_exit_vec;

/* Code of the one unit goes on in the other's. */
struct pb_exit_edge {
	uint32_t from, to;
};
typedef PB_VEC(struct pb_exit_edge) pb_edge_vec;

/* A window that holds exits. */
struct pb_exit_window {
	uint64_t start;
	uint8_t len;
	uint8_t how;		/* of its jump: WINDOW, PADDED, ENTRY, HOLE, DUG, ... */
	uint8_t dug_len;
	int16_t via;
	int32_t fn;		/* ENTRY: whose */
	uint32_t recipe;
};
#endif
