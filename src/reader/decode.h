/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread's chunks as a stream of events. The cursor keeps one window of one
 * chunk in memory and trusts nothing in it: any sequence of words gives some
 * sequence of events, at most a few for each word.
 *
 * How records become events (the format: abi/entries.h):
 *
 *   LEAF, LONG     LEAF
 *   ENTRY          ENTRY, and the call is pushed on its stack; OPEN, if it began
 *                  in the process that forked this one (LEAF: EXIT, likewise)
 *   EXIT           for each call above the one it closes: END (skipped), then
 *                  EXIT; a call whose beginning was not seen: EXIT without `call`
 *   TAIL           EXIT, marked; TAIL_LEAF: LEAF, marked
 *   END            with an open call: likewise, END; of a leaf: END, no `call`
 *   CALL, FUNC     CALL, FUNC
 *   LOST           LOST
 *   OPEN           nothing, if this reader has all up to here; else the stack
 *                  is made to agree with them: END (lost) for a call that is no
 *                  longer open, OPEN for one that it didn't know
 *   chunk leaf_*   LEAF_OPEN at the thread's end
 *   STACK TIME PAD holes, unknown types: none
 *
 * Context: the observer, one thread.
 */
#ifndef PB_READER_DECODE_H
#define PB_READER_DECODE_H
#include "reader/call_stacks.h"
#include "reader/data.h"

/* X(kind, name that raw output has)
 * OPEN: an open call whose beginning isn't in the data. LEAF_OPEN: ran, without a
 * traced callee, when the data ends. */
#define PB_EVENTS(X) \
	X(LEAF, "leaf") X(ENTRY, "entry") X(EXIT, "exit") X(END, "end") X(CALL, "call") \
	X(FUNC, "function") X(OPEN, "open") X(LOST, "lost") X(LEAF_OPEN, "running")

enum pb_event_kind {
	PB_EV_NONE,		/* the end */
#define X(kind, name) PB_EV_##kind,
	PB_EVENTS(X)
#undef X
};

#define PB_EV_SKIPPED	1	/* END: an outer call ended first */
#define PB_EV_GAP	2	/* END: its end is among lost records. LOST: count unknown */

/* OPEN; EXIT, END without `call`: it began in the process that forked this one, and is counted
 * there */
#define PB_EV_INHERITED	4
/* EXIT, END without `call`, and no chunk is missing: it began on what the engine took for
 * another stack, or a STACK record is missing, and is counted there */
#define PB_EV_ELSEWHERE	8
#define PB_EV_TAIL	16	/* EXIT, LEAF: it ended by a jump to another function, at `time` */
#define PB_EV_COUNTED	(PB_EV_INHERITED | PB_EV_ELSEWHERE)

struct pb_event {
	enum pb_event_kind kind;
	uint32_t flags;
	uint32_t site;
	uint32_t depth;			/* of this call: calls open around it on its stack */
	uint64_t start, time;		/* clock; start 0: not known. time: when it happened */
	uint64_t value;			/* FUNC: parent_ip. LOST: how many */
	struct pb_open_call *call;	/* ENTRY, OPEN: as pushed. EXIT, END: as popped, readable
					 * until the next event; NULL: wasn't known */
	struct pb_call_stack *stack;
	struct pb_thread *thread;
	uint32_t pid, tid;
	size_t image;			/* index of data->images */
};

struct pb_cursor {
	struct pb_data *data;
	struct pb_stacks *stacks;
	struct pb_thread *thread;
	size_t next_chunk;		/* index within the thread's chunks */
	struct pb_chunk chunk;		/* header of the present one */
	bool in_chunk, done;
	bool attention;			/* gap, lost_due or gap_due */
	size_t image;
	uint64_t last;			/* time of the record before */
	uint64_t latest;		/* highest time in this chunk */
	uint64_t born;			/* when its process began, if it is the first thread; 0:
					 * unknown */
	struct pb_call_stack *stack;
	struct pb_call_stack *shown;	/* of the last event */

	uint64_t *window;		/* words of the chunk's data */
	uint32_t window_words;		/* its size */
	uint32_t pos, end;		/* next word, words in it */
	uint64_t file_at, file_left;	/* after the window, bytes */

	bool gap;			/* OPEN records are to be believed */
	uint32_t open_seen;		/* that many of the stack agree with them */
	uint32_t open_left;		/* of the list's records, those still to be believed */
	uint32_t open_at;		/* which one of the list is next */
	uint64_t open_unwritten[2];	/* those that it has too early */
	uint32_t base_due;		/* open calls around them that nothing is known of */
	uint32_t opened;		/* calls down to this depth may have been opened by the
					 * list */
	struct pb_call_stack *opened_on;
	uint64_t lost_seen, lost_due;
	bool gap_due;
	bool searched;			/* skip_to holds for the record at pos */
	int64_t skip_to;		/* index of the call that it closes, or -1 */
	bool shared;			/* used a stack that another thread used */
	int finish;			/* what was returned at the end */

	/* totals */
	uint64_t records, chunks_missing, read_errors;
	uint64_t unwritten;	/* words, or records of several, that were reserved and never
				 * written */
	uint64_t inherited;	/* records of calls that began in the parent */
	uint64_t entered;	/* ENTRY records of calls that their chunk lists as open; not
				 * inherited ones */
};

/* `window_bytes`: 64 at least. 0 or -ENOMEM. */
int pb_cursor_init(struct pb_cursor *c, struct pb_data *d, struct pb_stacks *stacks,
		   struct pb_thread *thread, uint32_t window_bytes);
void pb_cursor_free(struct pb_cursor *c);

/* The next event; false at the end. */
bool pb_cursor_next(struct pb_cursor *c, struct pb_event *ev);
/* When the next event begins, without decoding it; false at the end. If the event is in
 * a chunk that isn't open yet, the time is that of the record before it: a lower bound. */
bool pb_cursor_peek(struct pb_cursor *c, uint64_t *time);
/* Opens the chunk of the next event. False: it is open, or there is none. */
bool pb_cursor_open(struct pb_cursor *c);
#endif
