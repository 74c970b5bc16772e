/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One pass over the calls of a data directory, for code that sums calls up: the report, the tree of
 * calls, the count of kept calls. Each call counts once: where it ends, or at the end of the data
 * if it is still open. A call that was open during a fork counts in the parent only. If a call
 * appears both in a list of open calls and with its ENTRY, the ENTRY counts.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_READER_CALL_WALK_H
#define PB_READER_CALL_WALK_H
#include "reader/stream.h"

struct pb_call_walk {
	struct pb_data *data;
	const uint32_t *tids;		/* the threads to walk; nr_tids 0: all threads */
	size_t nr_tids;
	bool by_time;
	void *arg;
	/* Called for each event, with the number of calls that it counts for. If the process
	 * inherited the call by fork, the call's `aux` is the time of the fork, or 1 without a
	 * clock. Returns false to end the walk. */
	bool (*event)(void *arg, const struct pb_event *ev, unsigned calls);
	/* Called after the last event for each call that is still open: on each stack from the
	 * outermost call inwards, then with call NULL for the leaf that runs there. */
	void (*open)(void *arg, struct pb_call_stack *s, const struct pb_open_call *call,
		     unsigned calls);
	struct pb_stream_totals totals;	/* set by the walk */
};

/* 0 or -errno. -EAGAIN: a stack has moved between threads, so that the order of their events
 * matters. The sums are invalid: walk again with by_time. */
int pb_call_walk(struct pb_call_walk *w);
#endif
