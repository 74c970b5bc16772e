/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds units (the code of one FDE) that may run in another way than the sweep has seen, and
 * refuses them: their exits are not hooked. Each function below looks for one such case.
 */
#include "module/analysis/exits_priv.h"

static void flag(struct pb_an *an, size_t unit, enum pb_inexit why)
{
	an->units[unit] |= 1u << why;
}

/*
 * Refuses the units whose FDEs overlap. The sweep takes the last FDE that begins before an address,
 * but nothing proves that this FDE's rows are the right ones. And the sweep doesn't follow the code
 * of the other FDE into the bytes that both cover, so it would miss exits there. lld makes such
 * FDEs: it deletes the jump at the end of a basic block's section, but doesn't shorten the FDE.
 */
static void find_overlaps(struct pb_an *an)
{
	const struct pb_cfi *cfi = &an->cfi;
	size_t widest = 0;	/* of the FDEs so far, the one that ends last */

	for (size_t u = 1; u < cfi->fdes.n; u++) {
		if (cfi->fdes.v[u].start < cfi->fdes.v[widest].end) {
			flag(an, u, PB_INEXIT_OVERLAP);
			flag(an, widest, PB_INEXIT_OVERLAP);
		}
		if (cfi->fdes.v[u].end > cfi->fdes.v[widest].end)
			widest = u;
	}
}

void pb_doubts_find(struct pb_an *an)
{
	find_overlaps(an);
	pb_restores_check(an);
}
