/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writing the unwind table of stubs. Stubs come in the order of their addresses; runs of
 * those whose frame is the entry's all along share an entry. Context: as batches. */
#ifndef PB_ENGINE_TEXT_ROWS_H
#define PB_ENGINE_TEXT_ROWS_H
#include <stddef.h>
#include "abi/analysis_place.h"

struct pb_rows {
	uint8_t *at;		/* where the next byte goes */
	uint8_t *cie;
	uint64_t text;		/* addresses count from here */
	uint64_t plain;		/* a run of stubs with one row starts here; 0: none */
};

/* How many bytes it may take: first, and for each place. */
#define PB_ROWS_BEGIN	36
static inline size_t pb_rows_size(const struct pb_recipe *r)
{
	/* a run may end before each of them: two heads; three bytes to advance, the CFA 7,
	 * registers that are kept 6 each, six of them in stubs of exits */
	return 2 * 21 + 50 * ((size_t)r->nr_pairs + r->nr_fixups + 1);
}

void pb_rows_begin(struct pb_rows *t);
/* The stub of a site, and of a window of exits. */
void pb_rows_stub(struct pb_rows *t, uint64_t stub, const struct pb_place *p);
void pb_rows_exit(struct pb_rows *t, uint64_t stub, const struct pb_place *p);
void pb_rows_end(struct pb_rows *t, uint64_t end);
#endif
