/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Returns the events of all threads as one stream. With by_time, the events are merged by time.
 * Without by_time, the stream has all events of one thread, then all events of the next thread, and
 * so on. Without by_time, reading is faster. But if a call stack moves between threads, sums over
 * the events are wrong. In that case `shared` becomes true, and the caller must start again with
 * by_time. The stream needs memory for the open calls, and for one window (decode.h) of each thread
 * that lives at the same time.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_READER_STREAM_H
#define PB_READER_STREAM_H
#include "reader/decode.h"

struct pb_stream_totals {
	uint64_t records, lost, no_return, missed, unwritten, chunks_missing, read_errors;
	uint64_t discarded;	/* number of the lost calls that the recorder couldn't keep */
	uint64_t bytes;		/* number of bytes of the chunks, with their headers */
};

struct pb_stream {
	struct pb_data *data;
	struct pb_stacks *stacks;
	struct pb_cursor *cursors;
	size_t nr;
	struct pb_stream_key { uint64_t time; struct pb_cursor *cursor; } *heap, *heap_start;
	size_t nr_heap;
	bool by_time, fresh, shared;	/* fresh: the heap's order is up to date */
	size_t room;			/* of `cursors` and `heap` */
	bool limited;			/* with by_time: no event after `limit` is returned */
	uint64_t limit;
	struct pb_stream_totals totals;
};

/* Opens the stream of the threads whose tid or pid is in `tids`, or of all threads if nr_tids is 0.
 * Returns 0 or -ENOMEM. */
int pb_stream_open(struct pb_stream *s, struct pb_data *d, bool by_time, const uint32_t *tids,
		   size_t nr_tids);
/* Adds a thread to a stream that follows a recording (follow.h). */
int pb_stream_add(struct pb_stream *s, struct pb_thread *t);
/* Continues a stream that follows a recording, after its cursors may have got more chunks.
 * pb_stream_next() then returns the events up to `limit`. */
void pb_stream_restart(struct pb_stream *s, bool by_time, uint64_t limit);
/* Restarts the stream with this cursor only. The other cursors give no events. */
void pb_stream_only(struct pb_stream *s, struct pb_cursor *c);
bool pb_stream_next(struct pb_stream *s, struct pb_event *ev);
/* Returns the stream's totals. They are complete after pb_stream_next() has returned false. */
const struct pb_stream_totals *pb_stream_totals(struct pb_stream *s);
void pb_stream_close(struct pb_stream *s);
#endif
