/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decodes a thread's chunks to a stream of events. The cursor keeps a part of one chunk in memory
 * (the window), and trusts none of its words. Any sequence of words gives a sequence of events,
 * with at most a few events for each word.
 *
 * How records become events (the format: abi/entries.h):
 *
 *   LEAF, LONG     LEAF
 *   ENTRY          ENTRY; the call is pushed on its stack
 *   EXIT           END (skipped) for each call that is open inside the exiting call, then
 *                  EXIT for the exiting call. If the data doesn't have the beginning of the
 *                  exiting call, there is only the EXIT event, and its `call` (struct
 *                  pb_event) is NULL
 *   TAIL           like EXIT, with PB_EV_TAIL
 *   TAIL_LEAF      LEAF, with PB_EV_TAIL
 *   END            if the call has an ENTRY, the same events as for EXIT, but the last
 *                  event is END. Otherwise one END whose `call` is NULL
 *   CALL, FUNC     CALL, FUNC
 *   LOST           LOST
 *   OPEN           none, if no record is missing before the chunk. Otherwise the events
 *                  make the stack agree with the list of OPEN records: END with PB_EV_GAP
 *                  for a call that is no longer open, OPEN for an unknown call
 *   STACK, TIME, PAD, UNDONE, ADDRESS, holes, unknown types: none
 *
 * After the thread's last record, the fields leaf_* of the last chunk's header may give a LEAF_OPEN
 * event. Then comes a LOST event if there are losses that no event has reported yet.
 *
 * A call that began in the process that forked this process may have had no record at the fork.
 * Then this process writes a record of the call, too. If it is an ENTRY, it becomes an OPEN event.
 * If it is a LEAF, it becomes an EXIT event.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_READER_DECODE_H
#define PB_READER_DECODE_H
#include "reader/call_stacks.h"
#include "reader/data.h"

/* X(kind, name in raw output). OPEN: an open call whose beginning isn't in the data. LEAF_OPEN: a
 * call that has no traced callee and still runs when the data ends. */
#define PB_EVENTS(X) \
	X(LEAF, "leaf") X(ENTRY, "entry") X(EXIT, "exit") X(END, "end") X(CALL, "call") \
	X(FUNC, "function") X(OPEN, "open") X(LOST, "lost") X(LEAF_OPEN, "running")

enum pb_event_kind {
	PB_EV_NONE,		/* the end */
#define X(kind, name) PB_EV_##kind,
	PB_EVENTS(X)
#undef X
};

#define PB_EV_SKIPPED	1	/* END: the call was skipped, because an outer call ended */
#define PB_EV_GAP	2	/* END: the record of the call's end is missing. LOST: the number of
				 * lost calls is unknown */

/* OPEN, LEAF_OPEN, and EXIT or END whose `call` is NULL: the call began in the process that forked
 * this process, and is counted there */
#define PB_EV_INHERITED	4
/* EXIT or END whose `call` is NULL, although no chunk is missing. The data has the call's
 * beginning, but on another stack. There are two possible reasons: the engine mistook this stack
 * for another stack, or a STACK record is missing. The call is counted at its beginning, not at
 * this event */
#define PB_EV_ELSEWHERE	8
#define PB_EV_TAIL	16	/* EXIT, LEAF: the call ended by a jump to another function, at
				 * `time` */
#define PB_EV_LATE	32	/* set only while a recording is followed: events with a later time
				 * were returned before this event */
#define PB_EV_COUNTED	(PB_EV_INHERITED | PB_EV_ELSEWHERE)

struct pb_event {
	enum pb_event_kind kind;
	uint32_t flags;
	uint32_t site;
	uint32_t depth;			/* number of this call's outer calls on this stack */
	uint64_t start, time;		/* start: when the call began; 0: unknown. time: when the
					 * event happened. Both in ticks of the records' clock */
	uint64_t value;			/* FUNC: parent_ip. LOST: number of calls */
	struct pb_open_call *call;	/* ENTRY, OPEN: the call, which is on the stack. EXIT, END:
					 * the call, which is popped, but can be read until the next
					 * event. NULL: unknown */
	struct pb_call_stack *stack;
	struct pb_thread *thread;
	uint32_t pid, tid;
	size_t image;			/* index in data->images */
};

struct pb_cursor {
	struct pb_data *data;
	struct pb_stacks *stacks;
	struct pb_thread *thread;
	const struct pb_chunk_ref *refs;	/* the thread's chunks, in the order of `seq` */
	size_t nr_refs;
	size_t next_chunk;		/* index in `refs` of the next chunk */
	struct pb_chunk chunk;		/* header of the current chunk */
	bool in_chunk, done;
	bool more;			/* the thread may get more chunks (follow.h). If
					 * pb_cursor_next() returns false, events may still come
					 * later */
	bool growing;			/* only with `more`: the current chunk may get more
					 * records */
	uint32_t skipped;		/* number of chunks that exist before the next chunk, but
					 * were left out (sample.h) */
	bool switches;			/* the thread has used a stack that isn't its own */
	bool attention;			/* at least one of gap, lost_due and gap_due is set */
	size_t image;
	uint64_t last;			/* time of the last record that was read */
	uint64_t latest;		/* the latest time in this chunk */
	uint64_t born;			/* when the process began, if this is the process' first
					 * thread; 0: unknown */
	struct pb_call_stack *stack;
	struct pb_call_stack *shown;	/* the stack of the last event that isn't an END */

	uint64_t *window;		/* words of the chunk's records */
	uint32_t window_words;		/* the window's size in words */
	uint32_t pos, end;		/* pos: the index of the next word in the window. end: the
					 * index after the window's last word */
	int fd;				/* the file of the current chunk */
	uint64_t file_at, file_left;	/* the part of the chunk after the window: its offset in the
					 * file, and its length */

	/* The list of open calls at a chunk's start consists of its OPEN records. */
	bool gap;			/* records are missing before the chunk: the list must be
					 * used */
	uint32_t open_seen;		/* number of the stack's calls that agree with the list */
	uint32_t open_left;		/* number of the list's records that must still be used */
	uint32_t open_at;		/* index of the list's next record */
	uint64_t open_unwritten[2];	/* a bit for each record of the list: set if the ENTRY of
					 * the record's call may come after the list */
	struct pb_call_stack *base_of;	/* after a gap: the stack whose `base` becomes base_due as
					 * soon as the calls that have ended are popped. NULL: no
					 * stack's `base` changes */
	uint32_t base_due;		/* number of outer open calls for which the list had no
					 * room; only their number is known */
	uint32_t opened;		/* on the stack `opened_on`, the list may have opened calls
					 * up to this depth. If the ENTRY of such a call comes
					 * later, the ENTRY doesn't open the call again */
	struct pb_call_stack *opened_on;
	uint64_t lost_seen;		/* number of lost calls that LOST events have reported */
	uint64_t lost_due;		/* the next LOST event must report at least this number
					 * of lost calls */
	bool gap_due;			/* the next LOST event must report missing chunks */
	bool searched;			/* skip_to is valid for the record at pos */
	int64_t skip_to;		/* index of the call that the record closes, or -1 */
	bool shared;			/* this thread has used a stack that another thread used
					 * before */
	int finish;			/* the next step of finish(), at the thread's end */

	/* totals */
	uint64_t records, chunks_missing, read_errors;
	uint64_t unwritten;	/* number of words that were reserved and never written. An UNDONE
				 * record counts as one, whatever its length */
	uint64_t inherited;	/* number of records of calls that began in the parent process */
	uint64_t entered;	/* number of ENTRY records whose call is in the list at their
				 * chunk's start, except inherited calls */
};

/* Begins with the thread's first event. window_bytes must be at least 64. Returns 0 or -ENOMEM. */
int pb_cursor_init(struct pb_cursor *c, struct pb_data *d, struct pb_stacks *stacks,
		   struct pb_thread *thread, uint32_t window_bytes);
void pb_cursor_free(struct pb_cursor *c);

/* Returns the next event in *ev. False at the end, or if `more` is true and there is no event
 * now. */
bool pb_cursor_next(struct pb_cursor *c, struct pb_event *ev);
/* Finds the time of the next event without decoding it. False at the end. If the event is in a
 * chunk that isn't open yet, *time is the chunk's start: a lower bound. */
bool pb_cursor_peek(struct pb_cursor *c, uint64_t *time);
/* Opens the chunk of the next event. False if the chunk is already open, or if there is no
 * chunk. */
bool pb_cursor_open(struct pb_cursor *c);
/* Makes the cursor continue its current chunk in a newer copy at `ref`, which has all records that
 * were read, and maybe more. growing: see `growing` above. */
void pb_cursor_extend(struct pb_cursor *c, const struct pb_chunk_ref *ref, bool growing);
#endif
