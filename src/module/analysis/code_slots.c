/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Holes dug into code (abi/analysis.h), for short jumps that reach no padding.
 * Where instructions begin, and that no jump leads between them, must be
 * certain far after an entry as well. So a dig lies
 *
 *   - in a function whose whole code an FDE names and decoding confirms, between
 *     the entry and the first instruction that doesn't fall through;
 *   - where no place has its address taken but as a landing pad or in a switch's
 *     table, and nothing jumps to a computed address: what leads there is known,
 *     and is after or before the ten bytes, or at the first;
 *   - outside of windows, holes, other digs and calls that become nops;
 *   - where no call returns from, as its return would be mispredicted each time.
 */
#include <Zydis/Zydis.h>
#include "base/base.h"
#include "module/analysis/stages.h"
#include "module/analysis/relocate.h"

#define BELOW		(-INT8_MIN - PB_JUMP_SHORT - PB_JUMP_LEN) /* from the window to a dig */
#define ABOVE		(INT8_MAX + PB_JUMP_SHORT - PB_JUMP_LEN)
#define MAX_HOST	(64u << 10)	/* bytes of a function that is looked through */
#define MAX_WORK	(16u << 20)	/* real files need thousands; a made-up one could need for ever */

static bool decode(const struct pb_range *r, uint64_t addr, ZydisDecodedInstruction *insn)
{
	ZydisDecoder d;
	uint64_t off = addr - r->addr;

	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&d, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	return off < r->size && ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&d, NULL, r->bytes + off,
									   r->size - off, insn));
}

/* Through a register, or memory that isn't one fixed word. */
static bool is_computed_jump(const ZydisDecodedInstruction *i)
{
	bool fixed = i->raw.modrm.offset && i->raw.modrm.mod == 0 && i->raw.modrm.rm == 5;

	return i->mnemonic == ZYDIS_MNEMONIC_JMP && !i->raw.imm[0].is_relative && !fixed;
}

/* May code be displaced from within the function? */
static bool look_through(struct pb_an *an, const struct pb_fn *f)
{
	const struct pb_fde *fde = f->fde >= 0 ? &an->cfi.fdes.v[f->fde] : NULL;
	const struct pb_range *r = pb_range_find(an, f->addr);
	ZydisDecodedInstruction insn;
	uint64_t at = f->addr;

	if (!fde || fde->signal || fde->end - f->addr > MAX_HOST || fde->end - r->addr > r->size)
		return false;
	for (; at < fde->end; at += insn.length) {
		an->dig_work++;
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
	case PB_REFUSED_AGENT: case PB_REFUSED_DECODE:
		return false;
	}
	if (f->host == PB_HOST_UNKNOWN)
		f->host = look_through(an, f) ? PB_HOST_YES : PB_HOST_NO;
	return f->host == PB_HOST_YES;
}

/* What is kept for the function k: its hole, or its dig. */
static bool hole_meets(const struct pb_fn *k, uint64_t start, uint64_t end)
{
	uint64_t hole = k->addr + k->window + (uint64_t)(int64_t)k->via;
	uint64_t from = k->dug_len ? hole - PB_JUMP_LEN : hole;
	uint64_t to = k->dug_len ? from + k->dug_len : hole + PB_JUMP_LEN;

	return k->via && from < end && start < to;
}

/* Is [start, end) free? Windows and holes are near their functions. */
static bool is_free(struct pb_an *an, uint64_t start, uint64_t end)
{
	for (long i = pb_fn_lower(an, end + PB_HOLE_REACH); i >= 0; i--) {
		const struct pb_fn *k = &an->fns.v[i];
		uint64_t window = k->addr + k->window;

		if (k->addr + PB_HOLE_REACH + PB_WINDOW_MAX < start)
			return true;
		an->dig_work++;
		if (hole_meets(k, start, end) ||
		    (k->window_len && window < end && start < window + k->window_len))
			return false;
	}
	return true;
}

/* Is all of what is displaced code, and nothing of it a call? */
static bool is_plain(const struct pb_window_out *w)
{
	if (w->padded)
		return false;
	for (unsigned i = 0; i < w->head.nr_fixups; i++)
		if (w->fixups[i].kind == PB_FIX_LO32)
			return false;
	return true;
}

/* And nothing may begin where the hole is to be. */
static bool suits(const struct pb_window_out *w)
{
	for (unsigned i = 0; i < w->head.nr_pairs; i++)
		if (w->pairs[i].orig == PB_JUMP_LEN)
			return false;
	return is_plain(w);
}

bool pb_carrier_fits(struct pb_an *an, uint64_t at, struct pb_window_out *w)
{
	return !pb_window_at(an, at, at, PB_JUMP_LEN, w) && is_plain(w) &&
	       !pb_nops_in(an, at, at + w->head.window_len);
}

bool pb_dig_fits(struct pb_an *an, uint64_t at, struct pb_window_out *w)
{
	return !pb_window_at(an, at, at, PB_DIG_LEN, w) && suits(w) &&
	       !pb_nops_in(an, at, at + w->head.window_len);
}

static bool dig_at(struct pb_an *an, uint64_t at, struct pb_window_out *w)
{
	return pb_dig_fits(an, at, w) && is_free(an, at, at + w->head.window_len);
}

/* The first place in the host from which the hole is in reach of the window. */
static uint64_t dig_in(struct pb_an *an, struct pb_fn *host, uint64_t window,
		       struct pb_window_out *w)
{
	const struct pb_range *r = pb_range_find(an, host->addr);
	uint64_t end = an->cfi.fdes.v[host->fde].end, at = host->addr;
	ZydisDecodedInstruction insn;

	for (; at < end && at <= window + ABOVE; at += insn.length) {
		an->dig_work++;
		if (at + BELOW >= window && dig_at(an, at, w))
			return at;
		if (!decode(r, at, &insn) || insn.mnemonic == ZYDIS_MNEMONIC_RET ||
		    insn.mnemonic == ZYDIS_MNEMONIC_JMP)
			break;
	}
	return 0;
}

/* Prefer the function itself: then other functions' places stay free. */
uint64_t pb_dig(struct pb_an *an, struct pb_fn *f, struct pb_window_out *w)
{
	uint64_t window = f->addr + f->window, at = 0;

	if (an->dig_work > MAX_WORK)
		return 0;
	if (is_host(an, f))
		at = dig_in(an, f, window, w);
	for (long i = pb_fn_lower(an, window + ABOVE); i >= 0 && !at; i--) {
		struct pb_fn *host = &an->fns.v[i];

		/* one that begins before it may reach as far as this one */
		if (host->addr + MAX_HOST < window || an->dig_work++ > MAX_WORK)
			break;
		if (host != f && host->addr + host->size + BELOW > window && is_host(an, host))
			at = dig_in(an, host, window, w);
	}
	return at;
}
