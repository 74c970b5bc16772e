/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the window of a jump: relocates the instructions that the jump would overwrite
 * (relocate.c), and refuses the window if the patched program could go wrong. A window is refused
 * if a branch leads into the jump, or if the loader changes bytes of the window (a text
 * relocation). It is also refused if it contains bytes of a restartable sequence, or only a part of
 * a call of __fentry__ or mcount that the compiler inserted (struct pb_nop).
 */
#include "base/base.h"
#include "module/analysis/relocate.h"
#include "module/analysis/stages.h"

/* True if any branch of the module leads strictly inside [start, start + len). len is only the
 * jump's length, because the window's bytes after the jump keep their value. */
static bool branched_into(const struct pb_range *r, uint64_t start, unsigned len)
{
	for (uint64_t off = start - r->addr + 1; off < start - r->addr + len; off++)
		if (pb_bit_test(r->reached, off))
			return true;
	return false;
}

static size_t nop_lower(const struct pb_an *an, uint64_t addr)
{
	return pb_bisect(i, 0, an->nops.n, an->nops.v[i].addr < addr);
}

/* True if a text relocation changes a byte of [start, start + len). A relocated word has up to 8
 * bytes. */
static bool relocated(const struct pb_an *an, uint64_t start, unsigned len)
{
	size_t i = pb_addr_lower(&an->textrels, start > 7 ? start - 7 : 0);

	return i < an->textrels.n && an->textrels.v[i] < start + len;
}

/* True if the window contains only a part of a call that the compiler inserted. */
static bool cuts_nop(const struct pb_an *an, const struct pb_window_out *w, uint64_t start)
{
	uint64_t end = start + w->head.window_len;
	size_t i = nop_lower(an, start > 5 ? start - 5 : 0);

	for (; i < an->nops.n && an->nops.v[i].addr < end; i++) {
		const struct pb_nop *n = &an->nops.v[i];
		bool whole = n->addr + n->len <= start;

		for (unsigned k = 0; k < w->head.nr_pairs; k++)
			whole |= start + w->pairs[k].orig == n->addr;
		if (!whole)
			return true;
	}
	return false;
}

bool pb_nops_in(const struct pb_an *an, uint64_t start, uint64_t end)
{
	size_t i = nop_lower(an, start > 5 ? start - 5 : 0);

	for (; i < an->nops.n && an->nops.v[i].addr < end; i++)
		if (an->nops.v[i].addr + an->nops.v[i].len > start)
			return true;
	return false;
}

uint8_t pb_window_to(struct pb_an *an, uint64_t from, uint64_t start, unsigned jump_len,
		     unsigned reach, struct pb_window_out *w)
{
	const struct pb_range *r = pb_range_find(an, from);
	uint64_t off = start - r->addr;
	size_t next = pb_addr_lower(&an->barriers, from + 1);
	uint8_t refused;

	if (off >= r->size)
		return PB_REFUSED_SHORT;
	struct pb_window_in in = {
		.bytes = r->bytes + off, .addr = start, .avail = r->size - off,
		.jump_len = jump_len, .reach = reach,
		.room = next < an->barriers.n ? an->barriers.v[next] - start : UINT64_MAX,
		.nops = an->nops.v, .nr_nops = an->nops.n,
	};

	if (next < an->barriers.n && an->barriers.v[next] <= start)
		return PB_REFUSED_CROSSES;
	refused = (uint8_t)pb_window_make(&in, w);
	if (refused)
		return refused;
	if (relocated(an, start, w->head.window_len))
		return PB_REFUSED_TEXTREL;
	if (pb_sequences_meet(an, start, start + w->head.window_len))
		return PB_REFUSED_RSEQ;
	if (branched_into(r, start, jump_len))
		return PB_REFUSED_BRANCH;
	if (cuts_nop(an, w, start))
		return PB_REFUSED_DECODE;
	return PB_REFUSED_NOT;
}

uint8_t pb_window_at(struct pb_an *an, uint64_t from, uint64_t start, unsigned jump_len,
		     struct pb_window_out *w)
{
	return pb_window_to(an, from, start, jump_len, 0, w);
}
