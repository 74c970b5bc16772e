/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Collects the facts that the search for exits (exits.c) needs, during the sweep, which decodes all
 * code once (stages.h). In code with an FDE, notes each instruction through which control may leave
 * the FDE's code. Also compares the CFI with instructions that change rsp (push, pop, add, sub,
 * lea, mov). If the CFI contradicts the code, the CFI doesn't prove where the return address is.
 *
 * Context: the sweep's threads, each with its own struct pb_flow. The threads share the bitmaps
 * `units` and `goes_on`, and only ever set bits in them.
 */
#ifndef PB_MODULE_FLOW_H
#define PB_MODULE_FLOW_H
#include "module/analysis/cfi_check.h"
#include "module/analysis/exit_types.h"
#include "module/analysis/insn.h"
#include "module/analysis/stages.h"

struct pb_flow {
	struct pb_an *an;
	const struct pb_range *range;
	long fde;			/* the FDE of the piece of code; -1: no FDE, and nothing is
					 * noted */
	uint64_t run;			/* start of the current straight-line code */
	bool live;			/* a symbol or an FDE says that the run's start is code */
	bool dead;			/* the run is not live, and has only padding so far */
	struct pb_cfi_check check;
	uint64_t last;			/* the address of the last instruction */
	uint8_t last_what;		/* enum pb_insn_what of the last instruction */
	pb_exit_vec exits;
	pb_gap_vec pads;
};

/* Begins a piece of code. `vouched` is true if a symbol or an FDE says that the piece is code. */
void pb_flow_begin(struct pb_flow *f, const struct pb_range *r, long fde, uint64_t addr,
		   bool vouched);
void pb_flow_note(struct pb_flow *f, const struct pb_insn *i, uint64_t addr,
		  const struct pb_cfi_row *row);
void pb_flow_undecoded(struct pb_flow *f, uint64_t addr);
/* Ends the piece at `end`. The last instruction ends at addr, and `row` is its CFI row. */
void pb_flow_end(struct pb_flow *f, uint64_t addr, uint64_t end, const struct pb_cfi_row *row);
/* Moves the exits and the padding that one thread has noted into the analysis. Must be called for
 * the threads in the order of their code. */
void pb_flow_collect(struct pb_flow *f);

/* Notes the next instruction of a piece with an FDE. For most instructions, there is nothing to
 * note. */
static inline void pb_flow_insn(struct pb_flow *f, const struct pb_insn *i, uint64_t addr,
				const struct pb_cfi_row *row)
{
	f->last = addr;
	f->last_what = i->what;
	if (f->dead || i->relative || f->check.at == addr || i->opcode == PB_INSN_MOV_TO_REG ||
	    (i->opcode == PB_INSN_MOV_FROM_REG && i->mod == 3) ||
	    (i->what && i->what != PB_INSN_CALL && i->what != PB_INSN_NOP))
		pb_flow_note(f, i, addr, row);
}
#endif
