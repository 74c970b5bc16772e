/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One pass over the calls of a data directory, for code that sums calls up: the report, the tree of
 * calls, the count of calls in the data (kept_calls.h). Each call counts once: when it ends, or at
 * the end of the data if the call is still open. If only the beginning of a call is recorded (CALL,
 * FUNC), the call counts there. A call that was open during a fork counts in the parent only. The
 * data may have a call twice: in a list of open calls, and by its ENTRY. Then the ENTRY's call
 * counts, and the list's call doesn't.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_READER_CALL_WALK_H
#define PB_READER_CALL_WALK_H
#include "reader/stream.h"

struct pb_call_walk {
	struct pb_data *data;
	const uint32_t *tids;		/* the threads to walk; if nr_tids is 0, all threads */
	size_t nr_tids;
	bool by_time;			/* the threads' events come in the order of time;
					 * otherwise one thread comes after the other (stream.h) */
	void *arg;
	/* Called for each event. `calls` is the number of calls that the event counts for. If the
	 * process inherited the event's call (ev->call) by fork, the walk has set the `aux` of this
	 * call to the time of the fork, or to 1 without a clock. Returns false to end the walk. */
	bool (*event)(void *arg, const struct pb_event *ev, unsigned calls);
	/* Called after the last event, once for each call that is still open. The calls of a stack
	 * come from the outermost call to the innermost. After the calls of a stack comes the leaf
	 * that runs on that stack, with `call` NULL. */
	void (*open)(void *arg, struct pb_call_stack *s, const struct pb_open_call *call,
		     unsigned calls);
	struct pb_stream_totals totals;	/* set by the walk */
};

/* Returns the number of calls that the event counts for, and sets the `aux` of an inherited call.
 * Must be called once for each event, in order. */
unsigned pb_call_count(const struct pb_event *ev);
/* Returns 0 or -errno. -EAGAIN: a stack has moved between threads, so the threads' events must be
 * read in the order of time. The sums are invalid. The caller must walk again with by_time. */
int pb_call_walk(struct pb_call_walk *w);
#endif
