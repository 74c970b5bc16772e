/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One pass over the calls of a data directory, for whatever sums them up: the report, the tree of
 * calls, the count of what was kept. Each call counts once: where it ends, or at the end of the
 * data if it is open there. A call that a fork took along counts in the process that forked, and
 * one that is known twice counts where its beginning is in the data.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_READER_CALL_WALK_H
#define PB_READER_CALL_WALK_H
#include "reader/stream.h"

struct pb_call_walk {
	struct pb_data *data;
	const uint32_t *tids;		/* only these threads; nr_tids 0: all */
	size_t nr_tids;
	bool by_time;
	void *arg;
	/* Each event, and for how many calls it counts. A call that was taken along by a fork has
	 * its `aux` then: the time of the fork, or 1. False: the walk ends here. */
	bool (*event)(void *arg, const struct pb_event *ev, unsigned calls);
	/* After the last event, each call that is still open: from the outermost on, then with NULL
	 * the leaf that ran on the stack. */
	void (*open)(void *arg, struct pb_call_stack *s, const struct pb_open_call *call,
		     unsigned calls);
	struct pb_stream_totals totals;	/* set by the walk */
};

/* 0 or -errno. -EAGAIN: not by time, and a stack has moved between threads, so that the order
 * counts: what was summed up is void. */
int pb_call_walk(struct pb_call_walk *w);
#endif
