/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Does the part of the sweep that serves the search for exits (flow.h). Notes each instruction
 * through which control may leave a unit (the code of one FDE). Also compares the CFI with what the
 * code does to rsp. If a unit's CFI contradicts its code, nothing proves where the return address
 * is. The unit's exits are then not hooked, and an->units has the reason.
 */
#include "module/analysis/flow.h"

static void flag_unit(struct pb_flow *f, enum pb_inexit why)
{
	__atomic_fetch_or(&f->an->units[f->fde], 1u << why, __ATOMIC_RELAXED);
}

/* True if the return address is on top of the stack: the frame is gone. */
static bool is_gone(const struct pb_cfi_row *row)
{
	return row->cfa_reg == PB_REG_RSP && row->cfa_off == 8 && !row->ra_moved &&
	       !row->ra_undefined;
}

static void note_exit(struct pb_flow *f, unsigned kind, uint64_t addr, uint8_t len,
		      uint64_t target, const struct pb_cfi_row *row)
{
	pb_vec_push(&f->exits, (struct pb_fn_exit){
		.addr = addr, .run = f->run, .target = target, .unit = (uint32_t)f->fde,
		.cfa_off = row->cfa_off, .cfa_reg = row->cfa_reg, .gone = is_gone(row),
		.live = f->live, .kind = (uint8_t)kind, .len = len });
}

static void end_padding(struct pb_flow *f, uint64_t addr)
{
	if (f->dead && addr > f->run)
		pb_vec_push(&f->pads, (struct pb_gap){ f->run, addr });
	f->dead = false;
}

static void begin_run(struct pb_flow *f, uint64_t addr, bool live)
{
	end_padding(f, addr);
	f->run = addr;
	f->live = live;
	f->dead = !live;
	if (!pb_cfi_check_end(&f->check))
		flag_unit(f, PB_INEXIT_CFI);
}

void pb_flow_begin(struct pb_flow *f, const struct pb_range *r, long fde, uint64_t addr,
		   bool vouched)
{
	bool same = f->range == r && f->fde == fde;

	if (!same)
		f->dead = false;
	if (!same)
		pb_cfi_check_begin(&f->check);
	f->range = r;
	f->fde = fde;
	if (!same || vouched)
		begin_run(f, addr, vouched);
	f->last = addr;
	f->last_what = PB_INSN_TRAP;
}

/* Handles a branch with a known target. */
static void relative(struct pb_flow *f, const struct pb_insn *i, uint64_t addr,
		     const struct pb_cfi_row *row)
{
	const struct pb_fde *fde = &f->an->cfi.fdes.v[f->fde];
	uint64_t target = addr + i->length + i->imm[0];

	if (target - fde->start >= fde->end - fde->start)
		note_exit(f, i->what == PB_INSN_JMP ? PB_EXIT_JMP : PB_EXIT_JCC, addr, i->length,
			  target, row);
	/* a hook at the entry would record this jump as a call */
	else if (target == fde->start && fde->entry && !is_gone(row))
		flag_unit(f, PB_INEXIT_FRAME);
	else if (target - fde->start <= PB_ENTRY_REACH)
		f->an->goes_on[f->fde] = true;
}

static void control_flow(struct pb_flow *f, const struct pb_insn *i, uint64_t addr,
			 const struct pb_cfi_row *row)
{
	if (i->far)
		flag_unit(f, PB_INEXIT_FAR);
	if (i->what == PB_INSN_RET)
		note_exit(f, PB_EXIT_RET, addr, i->length, 0, row);
	else if (i->relative)
		relative(f, i, addr, row);
	else
		note_exit(f, PB_EXIT_INDIRECT, addr, i->length, 0, row);
}

void pb_flow_note(struct pb_flow *f, const struct pb_insn *i, uint64_t addr,
		  const struct pb_cfi_row *row)
{
	bool ends = i->what == PB_INSN_RET || i->what == PB_INSN_JMP;

	if (f->dead && i->what != PB_INSN_NOP && i->what != PB_INSN_TRAP)
		end_padding(f, addr);
	if ((f->check.at == addr || (!i->relative && !ends)) &&
	    !pb_cfi_check_insn(&f->check, i, addr, row, (uint32_t)f->fde))
		flag_unit(f, PB_INEXIT_CFI);
	if (ends || (i->relative && i->what != PB_INSN_CALL))
		control_flow(f, i, addr, row);
	if (ends)
		begin_run(f, addr + i->length, false);
}

void pb_flow_undecoded(struct pb_flow *f, uint64_t addr)
{
	static const struct pb_cfi_row none = { .cfa_reg = PB_REG_NONE };

	if (f->fde < 0)
		return;
	end_padding(f, addr);
	note_exit(f, PB_EXIT_UNDECODED, addr, 1, 0, &none);
	f->last_what = PB_INSN_TRAP;
}

/* True if control does not continue after the last instruction of a unit, because the instruction
 * is a trap, or always faults. */
static bool never_continues(const struct pb_flow *f)
{
	const struct pb_range *r = f->range;
	ZydisDecoder decoder;
	struct pb_insn i;

	if (f->last_what == PB_INSN_TRAP)
		return true;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return pb_insn_decode(&decoder, r->bytes + (f->last - r->addr),
			      r->size - (f->last - r->addr), &i) && pb_insn_faults(&i);
}

void pb_flow_end(struct pb_flow *f, uint64_t addr, uint64_t end, const struct pb_cfi_row *row)
{
	const struct pb_fde *fde;

	if (f->fde < 0)
		return;
	fde = &f->an->cfi.fdes.v[f->fde];
	if (!pb_cfi_check_end(&f->check))
		flag_unit(f, PB_INEXIT_CFI);
	if (addr > end && f->range->bytes[f->last - f->range->addr] != PB_INSN_LOCK)
		pb_flow_undecoded(f, f->last);
	if (end < fde->end)
		return;
	if (!f->dead && f->run != addr && !never_continues(f)) {
		note_exit(f, PB_EXIT_FALL, f->last, (uint8_t)(addr - f->last), addr, row);
		if (!f->exits.failed)
			f->exits.v[f->exits.n - 1].after_call = f->last_what == PB_INSN_CALL;
	}
	end_padding(f, end);
	f->run = end;
}

void pb_flow_collect(struct pb_flow *f)
{
	struct pb_an *an = f->an;

	pb_vec_append(&an->exits, f->exits.v, f->exits.n);
	pb_vec_append(&an->pads, f->pads.v, f->pads.n);
	pb_vec_append(&an->lags, f->check.lags.v, f->check.lags.n);
	an->exits.failed |= f->exits.failed;
	pb_vec_append(&an->restores, f->check.restores.v, f->check.restores.n);
	an->restores.failed |= f->check.restores.failed;
	an->lags.failed |= f->check.lags.failed;
	an->pads.failed |= f->pads.failed;
	pb_vec_free(&f->exits);
	pb_vec_free(&f->pads);
	pb_vec_free(&f->check.lags);
	pb_vec_free(&f->check.restores);
}
