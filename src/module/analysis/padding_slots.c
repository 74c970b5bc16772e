/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gives out trampoline slots in the padding between functions. A slot has five bytes for a long
 * jump, and a short jump leads to the slot (struct pb_recipe in abi/analysis.h). Sites are taken in
 * the order of their addresses, and each site gets the lowest slot that it reaches. As all sites
 * reach equally far, no other choice serves more sites.
 */
#include "base/base.h"
#include "module/analysis/stages.h"
#include "module/analysis/relocate.h"

#define BELOW	(-INT8_MIN - PB_JUMP_SHORT)	/* how far before the window's start a slot may
						 * lie */
#define ABOVE	(INT8_MAX + PB_JUMP_SHORT)	/* how far after the window's start a slot may
						 * lie */

/* True if a branch leads into the padding, or if a relocation changes it. */
static bool leads_into(const struct pb_an *an, const struct pb_gap *g)
{
	const struct pb_range *r = pb_range_find(an, g->addr);
	size_t i = pb_addr_lower(&an->textrels, g->addr - 7);

	if (i < an->textrels.n && an->textrels.v[i] < g->end)
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

		if (leads_into(an, &g))
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
