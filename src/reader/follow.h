/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Follows a recording while it runs, and returns the events of all threads as one stream. The
 * stream goes on when the drain has written more chunks to the file `chunks`, or when open chunks
 * were copied to the file `open` (open_chunks.h).
 *
 * A round (pb_follow_update) finds the new data and sets the horizon. All records from before the
 * horizon are known, so a round returns the events up to the horizon in the order of time. The
 * horizon is the time just before the open chunks were last copied. A thread can hold the horizon
 * back by any of these:
 *
 *   a call that has made no traced call yet    its record comes when it ends or makes a traced call
 *   a record that isn't complete               the thread was interrupted while it wrote the record
 *   a chunk that isn't in the file yet         the chunk is full. After ten rounds and two passes
 *                                              of the drain over the ring, it counts as missing
 *
 * A thread can hold the horizon back by at most `delay_ns` (pb_follow_open). So one long call
 * doesn't stop the output of all threads. But a record of this thread may then come late: if later
 * events were already returned, its event has the flag PB_EV_LATE.
 *
 * Context: the observer. Only one thread uses it at a time.
 */
#ifndef PB_READER_FOLLOW_H
#define PB_READER_FOLLOW_H
#include <sys/types.h>
#include "module/demangle.h"
#include "reader/stream.h"

struct pb_follow;
struct pb_open_chunks;

/* Opens the directory of a recording that has begun. On failure, returns NULL, sets errno, and
 * writes one line to err. */
struct pb_follow *pb_follow_open(const char *dir, enum pb_demangle how, uint64_t delay_ns,
				 char *err, size_t errlen);
void pb_follow_close(struct pb_follow *f);
struct pb_data *pb_follow_data(struct pb_follow *f);
/* The stacks and the totals are valid between rounds. */
struct pb_stream *pb_follow_stream(struct pb_follow *f);

/* Begins a round. If the recording has ended, `o` is NULL, and the round returns all remaining
 * events. With by_time, the events of all threads are merged by time. Otherwise one thread comes
 * after the other. Returns 0, -errno or PB_FOLLOW_SKIPPED: this process is short of descriptors or
 * memory for a moment. The caller must then not read events before the next round: the old copies
 * of open chunks are gone. After PB_FOLLOW_SKIPS_MAX such rounds in a row, the error is
 * returned. */
#define PB_FOLLOW_SKIPPED	1
#define PB_FOLLOW_SKIPS_MAX	100	/* ten seconds, at ten rounds in a second */
int pb_follow_update(struct pb_follow *f, const struct pb_open_chunks *o, bool by_time);
/* Returns the next event, or false if this round has no more. */
bool pb_follow_next(struct pb_follow *f, struct pb_event *ev);
/* Returns the next event from late records. The caller calls this function after the last event of
 * a round; otherwise the events of late records are dropped. Late records are those of an
 * interrupted writer, and the records after them in the same chunk: they came after the cursor had
 * left the chunk. The event's stack has only calls of this chunk, and is valid until the next call.
 * False if there are no more. */
bool pb_follow_late_next(struct pb_follow *f, struct pb_event *ev);
/* True if the last update has found new modules or new program images, or if a module that couldn't
 * be loaded before may be loaded now. The caller must then make the functions' numbers
 * (view/site_numbers.h) again: the old numbers don't know these. */
bool pb_follow_modules(const struct pb_follow *f);
/* True if a process is being traced, or was. Before that, there can't be any calls. */
bool pb_follow_is_traced(const struct pb_follow *f);
/* Returns the index in the stream's cursors of the thread with this serial, or -1. */
ssize_t pb_follow_index(const struct pb_follow *f, uint32_t serial);
/* Returns the time up to which the thread of the n-th cursor has certainly lived, or `now` if it
 * still holds a chunk, or held one when the recording ended. A thread without a chunk may have
 * ended, or may have left its program by exec, without the ends of its calls. The time of its last
 * record is known, and the last round that found its chunk. */
uint64_t pb_follow_alive_until(const struct pb_follow *f, size_t n, uint64_t now);
/* Finds the call that the thread of the n-th cursor is in, if the data has no record of this call
 * yet: the call has made no traced call and has not ended. False if there is no such call. */
bool pb_follow_leaf(const struct pb_follow *f, size_t n, uint32_t *site, uint64_t *start);
/* Returns the number of bytes at the beginning of `chunks` that are not needed any more. */
uint64_t pb_follow_done(const struct pb_follow *f);
#endif
