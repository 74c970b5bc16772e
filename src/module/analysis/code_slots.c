/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes trampoline slots in code, for short jumps that reach no padding. Instructions that together
 * have at least ten bytes are displaced into a copy. Five bytes become a jump to the copy, and five
 * bytes become the slot. The comment on struct pb_recipe (abi/analysis.h) explains windows and
 * slots, and has a drawing.
 *
 * The displaced code may be far from an entry. The analysis must know for certain where the
 * instructions begin, and that no jump leads into the middle of the ten bytes. So displaced code
 * lies
 *
 *   - in a function that an FDE covers and that can be decoded completely. The displaced code lies
 *     between the function's entry and its first instruction that does not fall through;
 *   - in a function that has no computed jump, and in which no call, lea or relocation refers to
 *     an instruction after the entry. Landing pads are marked as jump targets (lsda.c). So all
 *     targets are known, and only the first of the ten bytes may be a target;
 *   - outside of windows, slots, other displaced code, and calls that the agent replaces by nops
 *     (struct pb_nop);
 *   - where there is no call, since a displaced call's return would be mispredicted each time.
 */
#include <Zydis/Zydis.h>
#include "base/base.h"
#include "module/analysis/stages.h"
#include "module/analysis/relocate.h"

/* The displaced code may begin up to BELOW bytes before the window, or up to ABOVE bytes after the
 * window's start. The slot is PB_JUMP_LEN bytes after the beginning of the displaced code. */
#define BELOW		(-INT8_MIN - PB_JUMP_SHORT - PB_JUMP_LEN)
#define ABOVE		(INT8_MAX + PB_JUMP_SHORT - PB_JUMP_LEN)
#define MAX_HOST	(64u << 10)	/* limit on the size of a function whose code may be
					 * displaced */
#define MAX_WORK	(16u << 20)	/* limit on steps; real files need only thousands */

static bool decode(const struct pb_range *r, uint64_t addr, ZydisDecodedInstruction *insn)
{
	ZydisDecoder d;
	uint64_t off = addr - r->addr;

	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&d, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	return off < r->size && ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&d, NULL, r->bytes + off,
									   r->size - off, insn));
}

/* Whether the instruction is a jump through a register or through memory. A jump through one fixed
 * word (RIP-relative) doesn't count. */
static bool is_computed_jump(const ZydisDecodedInstruction *i)
{
	bool fixed = i->raw.modrm.offset && i->raw.modrm.mod == 0 && i->raw.modrm.rm == 5;

	return i->mnemonic == ZYDIS_MNEMONIC_JMP && !i->raw.imm[0].is_relative && !fixed;
}

/* Whether code within the function may be displaced. Decodes the whole function. */
static bool look_through(struct pb_an *an, const struct pb_fn *f)
{
	const struct pb_fde *fde = f->fde >= 0 ? &an->cfi.fdes.v[f->fde] : NULL;
	const struct pb_range *r = pb_range_find(an, f->addr);
	ZydisDecodedInstruction insn;
	uint64_t at = f->addr;

	if (!fde || fde->signal || fde->end - f->addr > MAX_HOST || fde->end - r->addr > r->size)
		return false;
	for (; at < fde->end; at += insn.length) {
		an->slot_work++;
		if (!decode(r, at, &insn) || is_computed_jump(&insn))
			return false;
	}
	for (uint64_t i = f->addr + 1; i < fde->end; i++)
		if (pb_bit_test(r->called, i - r->addr))
			return false;
	return at == fde->end;
}

static bool is_host(struct pb_an *an, struct pb_fn *f)
{
	switch (f->refused) {
	case PB_REFUSED_LOADER: case PB_REFUSED_START: case PB_REFUSED_IFUNC:
	case PB_REFUSED_AGENT: case PB_REFUSED_DECODE: case PB_REFUSED_COPIED:
		return false;
	}
	if (f->host == PB_HOST_UNKNOWN)
		f->host = look_through(an, f) ? PB_HOST_YES : PB_HOST_NO;
	return f->host == PB_HOST_YES;
}

/* Whether function k's slot, or the code that is displaced for it, overlaps [start, end). */
static bool slot_meets(const struct pb_fn *k, uint64_t start, uint64_t end)
{
	uint64_t slot = k->addr + k->window + (uint64_t)(int64_t)k->via;
	uint64_t from = k->second_len ? slot - PB_JUMP_LEN : slot;
	uint64_t to = k->second_len ? from + k->second_len : slot + PB_JUMP_LEN;

	return k->via && from < end && start < to;
}

/* Whether [start, end) is free. Windows and slots are near their functions, so only functions near
 * `start` are checked. */
static bool is_free(struct pb_an *an, uint64_t start, uint64_t end)
{
	for (long i = pb_fn_lower(an, end + PB_SLOT_REACH); i >= 0; i--) {
		const struct pb_fn *k = &an->fns.v[i];
		uint64_t window = k->addr + k->window;

		if (k->addr + PB_SLOT_REACH + PB_WINDOW_MAX < start)
			return true;
		an->slot_work++;
		if (slot_meets(k, start, end) ||
		    (k->window_len && window < end && start < window + k->window_len))
			return false;
	}
	return true;
}

/* Whether all displaced bytes are code and none of the instructions is a call. */
static bool is_plain(const struct pb_window_out *w)
{
	if (w->padded)
		return false;
	for (unsigned i = 0; i < w->head.nr_fixups; i++)
		if (w->fixups[i].kind == PB_FIX_LO32)
			return false;
	return true;
}

/* Like is_plain(), but also checks that no instruction begins at the slot's address. */
static bool suits(const struct pb_window_out *w)
{
	for (unsigned i = 0; i < w->head.nr_pairs; i++)
		if (w->pairs[i].orig == PB_JUMP_LEN)
			return false;
	return is_plain(w);
}

bool pb_second_site_fits(struct pb_an *an, uint64_t at, struct pb_window_out *w)
{
	return !pb_window_at(an, at, at, PB_JUMP_LEN, w) && is_plain(w) &&
	       !pb_nops_in(an, at, at + w->head.window_len);
}

bool pb_code_slot_fits(struct pb_an *an, uint64_t at, struct pb_window_out *w)
{
	return !pb_window_at(an, at, at, PB_CODE_SLOT_LEN, w) && suits(w) &&
	       !pb_nops_in(an, at, at + w->head.window_len);
}

static bool slot_at(struct pb_an *an, uint64_t at, struct pb_window_out *w)
{
	return pb_code_slot_fits(an, at, w) && is_free(an, at, at + w->head.window_len);
}

/* Finds the first place in `host` where code can be displaced for a slot in reach of the window.
 * Returns its address, or 0. */
static uint64_t slot_in(struct pb_an *an, struct pb_fn *host, uint64_t window,
			struct pb_window_out *w)
{
	const struct pb_range *r = pb_range_find(an, host->addr);
	uint64_t end = an->cfi.fdes.v[host->fde].end, at = host->addr;
	ZydisDecodedInstruction insn;

	for (; at < end && at <= window + ABOVE; at += insn.length) {
		an->slot_work++;
		if (at + BELOW >= window && slot_at(an, at, w))
			return at;
		if (!decode(r, at, &insn) || insn.mnemonic == ZYDIS_MNEMONIC_RET ||
		    insn.mnemonic == ZYDIS_MNEMONIC_JMP)
			break;
	}
	return 0;
}

/* Finds a place for f's slot. Tries f's own code first, so that places in other functions stay
 * free. */
uint64_t pb_code_slot(struct pb_an *an, struct pb_fn *f, struct pb_window_out *w)
{
	uint64_t window = f->addr + f->window, at = 0;

	if (an->slot_work > MAX_WORK)
		return 0;
	if (is_host(an, f))
		at = slot_in(an, f, window, w);
	for (long i = pb_fn_lower(an, window + ABOVE); i >= 0 && !at; i--) {
		struct pb_fn *host = &an->fns.v[i];

		/* a host may be MAX_HOST bytes long, so it may begin that far before the window */
		if (host->addr + MAX_HOST < window || an->slot_work++ > MAX_WORK)
			break;
		if (host != f && host->addr + host->size + BELOW > window && is_host(an, host))
			at = slot_in(an, host, window, w);
	}
	return at;
}
