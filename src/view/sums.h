/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sums of calls by function, for `report` and `live --top`. The caller gives each event to
 * pb_sums_event(). While a call is open, the `view` of struct pb_open_call is its function's
 * number.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_SUMS_H
#define PB_VIEW_SUMS_H
#include "reader/call_walk.h"
#include "view/site_numbers.h"
#include "view/view.h"

struct pb_sum {
	uint64_t calls, timed;
	uint64_t total, self, sum, min, max;	/* ticks of the clock */
	uint32_t active, pad;
};
_Static_assert(sizeof(struct pb_sum) == 64, "a cache line");

struct pb_sums {
	const struct pb_view *view;
	bool selects;
	uint64_t latest;	/* time of the latest event; set only if `selects` is true */
	struct pb_sum *sums;	/* the index is the function's number */
	size_t size;		/* of `sums` in bytes */
	struct pb_sites sites;
	struct pb_call_stack *stack;
	int64_t budget;
	uint64_t open;		/* number of calls given to pb_sums_open() */
};

/* Returns 0 or -ENOMEM. The view must remain until pb_sums_free(). */
int pb_sums_init(struct pb_sums *m, const struct pb_view *v);
void pb_sums_free(struct pb_sums *m);
/* Adds an event that counts for `calls` calls (reader/call_walk.h). `arg` is the struct pb_sums.
 * Returns true. */
bool pb_sums_event(void *arg, const struct pb_event *ev, unsigned calls);
/* Counts a call that is still open at the end of the data. The call's time isn't known. */
void pb_sums_open(void *arg, struct pb_call_stack *s, const struct pb_open_call *call,
		  unsigned calls);
#endif
