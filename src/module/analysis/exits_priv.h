/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declarations for the files that find exits: exits.c, doubts.c, computed.c, labels.c,
 * exit_tables.c, exit_windows.c with its helpers, and the files that check the CFI (cfi_check.c,
 * cfi_lags.c, cfi_restores.c). A unit is the code of one FDE (exit_types.h). */
#ifndef PB_MODULE_EXITS_PRIV_H
#define PB_MODULE_EXITS_PRIV_H
#include "module/analysis/insn.h"
#include "module/analysis/stages.h"

/* Where a jump through a register or memory takes its target from. */
enum pb_computed_how {
	PB_COMPUTED_UNKNOWN,
	PB_COMPUTED_SLOT,	/* the target is the value of a word at a fixed address: in the GOT
				 * or in a variable */
	PB_COMPUTED_POINTER,	/* the target is a pointer of unknown origin */
	PB_COMPUTED_POINTERS,	/* the target is an element of an array of pointers */
	PB_COMPUTED_OFFSETS,	/* the target is an array's address plus an element of the array */
	PB_COMPUTED_LABELS,	/* the target is a label's address plus an element of an array */
};

struct pb_computed {
	enum pb_computed_how how;
	uint64_t table;		/* POINTERS, OFFSETS, LABELS: the array's address, or 0 if it is
				 * unknown */
	uint64_t label;		/* LABELS: the address to which the offsets are added */
	bool on_stack;		/* the jump reads its target from the stack, perhaps from below rsp,
				 * where a stub keeps words of its own */
};

/* Counts the steps of searches around exits. Returns true if there are more steps than any real
 * file needs: real files need less than one for each byte. The caller must then end its search,
 * since a hostile file could make the search take forever. */
#define PB_EXIT_WORK		(256u << 20)
#define PB_EXIT_WORK_OF_BYTE	2
static inline bool pb_exit_work(struct pb_an *an, uint64_t steps)
{
	an->exit_work += steps;
	return an->exit_work > PB_EXIT_WORK + PB_EXIT_WORK_OF_BYTE * an->elf.size;
}

/* doubts.c: refuses units about which the sweep (stages.h) may be wrong: their exits aren't hooked.
 * False: there is no memory. */
bool pb_doubts_find(struct pb_an *an);
/* cfi_restores.c: refuses the units that copy a register to rsp, if the register may not hold the
 * value that the CFI implies. */
void pb_restores_check(struct pb_an *an);
/* computed.c: classifies the jump e, which is of kind PB_EXIT_INDIRECT. */
void pb_computed_jump(const struct pb_an *an, const struct pb_fn_exit *e, struct pb_computed *out);
/* True if the instruction writes to the return slot, takes the slot's address, or pops the slot.
 * Must be called only for an instruction that uses the slot. */
bool pb_writes_slot(const struct pb_an *an, uint64_t addr);
/* True if the unit takes the address of a jump table (PB_COMPUTED_OFFSETS) that has a target in the
 * unit. */
bool pb_unit_has_table(struct pb_an *an, uint32_t unit);
/* True if code or data contains an address in the unit, other than a function's start. */
bool pb_unit_has_labels(struct pb_an *an, uint32_t unit);

/* What an element of an array leads to, as seen from the jump that takes its target from the
 * array. */
enum pb_pointer {
	PB_POINTER_NONE,	/* no address of code */
	PB_POINTER_LIMIT,	/* not known, because the search would take too long */
	PB_POINTER_OTHER,	/* an address inside of another function */
	PB_POINTER_FUNCTION,	/* the address of a function, or of code without an FDE */
	PB_POINTER_INSIDE,	/* an address in the jump's unit */
	PB_POINTER_PART,	/* an address in another unit that is a part of the same function */
};
/* Sets *target to the target that the element at the address `at` gives to the jump e. */
enum pb_pointer pb_target_is(struct pb_an *an, const struct pb_fn_exit *e,
			     const struct pb_computed *c, uint64_t at, uint64_t *target);
/* The kinds of targets that an array has. functions: a function comes before the first target
 * inside of the unit */
struct pb_targets {
	bool inside, parts, functions;
};
/* In functions.c: true if code of the unit uses memory below rsp where it has no frame. */
bool pb_unit_uses_red_zone(const struct pb_an *an, long unit);
/* In labels.c: true if all targets of the jump table (PB_COMPUTED_LABELS) lie in the unit. */
bool pb_label_table_fits(struct pb_an *an, uint32_t unit, uint64_t label, uint64_t table);
/* In computed.c: returns the address of the last instruction that begins before addr, at floor or
 * later. Returns 0 if there is none. */
uint64_t pb_start_before(const struct pb_range *r, uint64_t addr, uint64_t floor);

/* exit_windows.c: looks for a window for each exit of the wanted units. If an exit gets no window,
 * its `why` gives the reason. Returns 0 or -ENOMEM. */
int pb_exit_windows_make(struct pb_an *an, const bool *wanted);
#endif
