/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds trampoline slots for entries. A slot has five bytes for a long jump, and a short jump leads
 * to the slot (struct pb_recipe in abi/analysis.h, with a drawing).
 *
 * Slots in the padding between functions are given out first. Sites are taken in the order of their
 * addresses, and each site gets the lowest slot that it reaches. As all sites reach equally far, no
 * other choice serves more sites.
 *
 * Slots in code are for short jumps that reach no padding. Instructions that together have at least
 * ten bytes are displaced into a copy. Five bytes become a jump to the copy, and five bytes become
 * the slot. The displaced code may be far from an entry. The analysis must know for certain where
 * the instructions begin, and that no jump leads into the middle of the ten bytes. So displaced
 * code lies
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

#define BELOW	(-INT8_MIN - PB_JUMP_SHORT)	/* how far before the window's start a slot may
						 * lie */
#define ABOVE	(INT8_MAX + PB_JUMP_SHORT)	/* how far after the window's start a slot may
						 * lie */
/* The displaced code may begin up to CODE_BELOW bytes before the window, or up to CODE_ABOVE bytes
 * after the window's start. The slot is PB_JUMP_LEN bytes after the beginning of the displaced
 * code. */
#define CODE_BELOW	(BELOW - PB_JUMP_LEN)
#define CODE_ABOVE	(ABOVE - PB_JUMP_LEN)
#define MAX_HOST	(64u << 10)	/* limit on the size of a function whose code may be
					 * displaced */
#define MAX_WORK	(16u << 20)	/* limit on steps; real files need only thousands */

/* -------------------------------------------------------------- in padding */

/* True if a branch leads into the padding, if a relocation changes it, or if it must stay as it is
 * for a restartable sequence. */
static bool is_needed(const struct pb_an *an, const struct pb_gap *g)
{
	const struct pb_range *r = pb_range_find(an, g->addr);
	size_t i = pb_addr_lower(&an->textrels, g->addr - 7);

	if (i < an->textrels.n && an->textrels.v[i] < g->end)
		return true;
	if (pb_sequences_meet(an, g->addr, g->end))
		return true;
	for (uint64_t at = g->addr; at < g->end; at++)
		if (pb_bit_test(r->reached, at - r->addr))
			return true;
	return false;
}

/* Removes from the padding the bytes that belong to the window of the function before the
 * padding. */
static void leave_window(const struct pb_an *an, struct pb_gap *g)
{
	long i = pb_fn_lower(an, g->addr);
	const struct pb_fn *f = i >= 0 ? &an->fns.v[i] : NULL;
	uint64_t end = f ? f->addr + f->window + f->window_len : 0;

	if (f && f->window_len && end > g->addr)
		g->addr = end;
}

void pb_padding_prepare(struct pb_an *an)
{
	size_t n = 0;

	for (size_t i = 0; i < an->gaps.n; i++) {
		struct pb_gap g = an->gaps.v[i];

		if (is_needed(an, &g))
			continue;
		leave_window(an, &g);
		if (g.addr + PB_JUMP_LEN <= g.end)
			an->gaps.v[n++] = g;
	}
	an->gaps.n = n;
}

uint64_t pb_padding_slot(struct pb_an *an, size_t *from, uint64_t window)
{
	struct pb_gap *g = an->gaps.v;

	while (*from < an->gaps.n && g[*from].end + BELOW < window + PB_JUMP_LEN)
		(*from)++;
	for (size_t i = *from; i < an->gaps.n && g[i].addr <= window + ABOVE; i++) {
		uint64_t slot = g[i].addr;

		if (slot + BELOW < window)
			slot = window - BELOW;
		if (slot + PB_JUMP_LEN > g[i].end)
			continue;
		g[i].addr = slot + PB_JUMP_LEN;
		return slot;
	}
	return 0;
}

/* ----------------------------------------------------------------- in code */

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

	for (; at < end && at <= window + CODE_ABOVE; at += insn.length) {
		an->slot_work++;
		if (at + CODE_BELOW >= window && slot_at(an, at, w))
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
	for (long i = pb_fn_lower(an, window + CODE_ABOVE); i >= 0 && !at; i--) {
		struct pb_fn *host = &an->fns.v[i];

		/* a host may be MAX_HOST bytes long, so it may begin that far before the window */
		if (host->addr + MAX_HOST < window || an->slot_work++ > MAX_WORK)
			break;
		if (host != f && host->addr + host->size + CODE_BELOW > window && is_host(an, host))
			at = slot_in(an, host, window, w);
	}
	return at;
}
