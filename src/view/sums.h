/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sums of calls by function, for `report`, `top` and `live --top`. The caller gives each event
 * to pb_sums_event(). While a call is open, the `view` of its struct pb_open_call is the number of
 * its function.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_SUMS_H
#define PB_VIEW_SUMS_H
#include "reader/call_walk.h"
#include "reader/sample.h"
#include "view/site_numbers.h"
#include "view/view.h"

struct pb_sum {
	uint64_t calls, timed;
	uint64_t total, self, sum, min, max;	/* ticks of the clock */
	uint32_t last;		/* the innermost open call of the function on the current stack: its
				 * index plus 1, or 0 if there is none */
	uint16_t total_rest, self_rest;	/* fractions of a tick that total and self don't have, in
					 * units of 1 / PB_SAMPLE_UNIT */
};
_Static_assert(sizeof(struct pb_sum) == 64, "a cache line");

struct pb_sums {
	const struct pb_view *view;
	const struct pb_clock *clock;
	bool selects;
	uint64_t latest;	/* time of the latest event; set only if `selects` is true */
	struct pb_sum *sums;	/* the index is the function's number */
	size_t size;		/* of `sums` in bytes */
	struct pb_sites sites;
	struct pb_call_stack *stack;	/* the stack of the last event */
	int64_t budget;		/* see sums.c */
	/* Each call counts `weight` times, and its time time_weight / PB_SAMPLE_UNIT times. Unless
	 * the caller changes them, calls and times count once. The times of many threads add up
	 * fast, so they aren't multiplied by PB_SAMPLE_UNIT */
	uint64_t weight, time_weight;
	uint64_t open;		/* number of calls that pb_sums_open() has counted */
};

/* Returns 0 or -ENOMEM. The view must remain until pb_sums_free(). */
int pb_sums_init(struct pb_sums *m, const struct pb_view *v);
void pb_sums_free(struct pb_sums *m);
/* Adds an event that counts for `calls` calls (reader/call_walk.h). `arg` is the struct pb_sums.
 * Returns true. */
bool pb_sums_event(void *arg, const struct pb_event *ev, unsigned calls);
/* Adds the calls that are open on the stack at `time`, with the time that they have run so far.
 * `leaf` is 0, or the number of the function of a leaf that has run since leaf_start. When the open
 * calls end, they are not counted again, and their time isn't added again. If the caller sets a
 * call's `aux` to a later time, the time from then on is added when the call ends. */
void pb_sums_settle(struct pb_sums *m, struct pb_call_stack *s, uint32_t leaf, uint64_t leaf_start,
		    uint64_t time);
/* Counts a call that is still open at the end of the data. The call's time isn't known. */
void pb_sums_open(void *arg, struct pb_call_stack *s, const struct pb_open_call *call,
		  unsigned calls);
#endif
