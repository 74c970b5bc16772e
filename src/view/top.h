/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tables of `patchbay top` and `live --top`: functions by their calls and times within an
 * interval.
 *
 * A call counts in the interval in which it begins. Its time is divided among the intervals in
 * which it runs. So the time of an open call counts before the call ends. Each table is the
 * difference of two states. A state has the sums of the calls that have ended (sums.h), and the
 * times of the open calls up to the time of the state.
 *
 * If decoding all calls would cost the program too much, the sums are estimates from a sample
 * (reader/sample.h).
 *
 * Context: the observer. Only one thread uses it at a time.
 */
#ifndef PB_VIEW_TOP_H
#define PB_VIEW_TOP_H
#include "reader/follow.h"
#include "reader/sample.h"
#include "view/view.h"

struct pb_top_group;
struct pb_top_thread;

struct pb_top {
	/* set by the caller */
	struct pb_out *out;
	bool threads;			/* print a table for each thread */
	enum pb_report_sort sort;
	bool screen;			/* the table is refreshed in place (screen.h) */
	const char *name;		/* the name of the program or process, for the first line */
	struct pb_sample sample;	/* the caller must have set `share` */

	/* private */
	struct pb_view view;
	struct pb_top_group **groups;	/* if `threads` is set, each group has the sums of one
					 * thread; otherwise there is one group, with the sums of
					 * all threads */
	size_t nr_groups;
	bool by_time;			/* events must be read by time, because stacks move between
					 * threads */
	struct pb_top_thread *each;	/* the index is that of the stream's cursor */
	size_t nr_each;
	uint64_t decoded, skipped;	/* bytes of records up to the last table */
	uint64_t lost;
	uint64_t begun, last;		/* TSC at the start of the first interval, and at the start
					 * of the current interval */
};

/* Adds the events of a round. Must be called after each pb_follow_update() that returns 0. `due`:
 * records that wait are sampled now, for example because a table is printed next. Returns 0 or
 * -errno. */
int pb_top_round(struct pb_top *t, struct pb_follow *f, bool due);
/* Prints the table of the time since the last table, up to `now` (TSC). */
int pb_top_print(struct pb_top *t, struct pb_follow *f, uint64_t now);
/* Prints the table of the whole recording. */
int pb_top_print_all(struct pb_top *t, struct pb_follow *f, uint64_t now);
void pb_top_free(struct pb_top *t);
#endif
