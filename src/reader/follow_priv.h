/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declarations that three files share: follow.c finds the chunks of each thread, sample.c chooses
 * some of them, and follow_late.c reads records that came late. */
#ifndef PB_READER_FOLLOW_PRIV_H
#define PB_READER_FOLLOW_PRIV_H
#include "reader/follow.h"
#include "reader/open_chunks.h"

struct follower {
	struct pb_thread *thread;
	struct pb_chunk_ref *refs;	/* chunks in the order of `seq`. The cursor may read the
					 * first nr_refs of them */
	size_t nr, room;
	size_t ready;			/* number of chunks before the first missing chunk */
	uint64_t next_seq;		/* `seq` of the chunk after these */
	/* for sample.c */
	bool paused;			/* the thread's chunks are sampled (PB_PART_PAUSE) */
	uint32_t skipped;		/* number of chunks that were left out since the last chunk
					 * that was decoded */
	uint64_t open_seq;		/* `seq` of the thread's open chunk, in the last round that
					 * held chunks back */
	uint32_t open_used;		/* number of bytes of records of that open chunk */
	bool dead;			/* the drain took the thread's chunk because the thread is
					 * dead */
	unsigned waited;		/* number of rounds that have waited for the thread's next
					 * chunk */
	uint64_t wait_passes;		/* the wait doesn't end before the drain has made this many
					 * passes in all */
	bool held;			/* the thread held its last chunk when the recording
					 * ended */
	uint64_t round;			/* the last round that found an open chunk of the thread */
	uint64_t alive;			/* the time of that round */
	struct pb_open_chunk open;	/* the newest open chunk in that round */
};

/* A chunk whose last records came after the cursor had left it. */
struct late_chunk {
	struct pb_chunk_ref ref;
	struct pb_thread *thread;
	uint32_t read;			/* number of bytes of records that the cursor has read */
};

struct pb_follow {
	struct pb_data *data;
	struct pb_stream stream;
	struct follower *followers;	/* parallel to stream.cursors */
	size_t room;
	struct { uint32_t serial; size_t index; } *by_serial;
	uint64_t delay_ticks, delay_ns;
	uint64_t scanned;		/* the headers in the first `scanned` bytes of the file
					 * `chunks` were read */
	off_t meta_size;
	uint64_t round;
	unsigned skipped;		/* number of rounds in a row that were skipped */
	uint64_t passes;		/* number of the drain's passes before this round */
	bool ended;			/* the recording has ended */
	uint64_t latest, before;	/* latest: the latest time of an event so far. before: the
					 * value of `latest` when the round began */
	bool modules;			/* this round has found new modules or images
					 * (pb_follow_modules()) */
	/* for follow_late.c: the late chunks of this round */
	struct late_chunk *late;
	size_t nr_late, late_done;	/* late_done: number of chunks that were begun */
	struct pb_cursor late_cursor;
	struct pb_stacks *late_stacks;	/* NULL: no chunk is being read */
	bool late_begun;		/* the cursor has come to the records that weren't read */
};

/* --- follow_late.c --- */

/* Adds a complete chunk of the thread with this index in `followers`. Before the thread's cursor
 * left the chunk, it read only the first `read` bytes of records. Returns 0 or -ENOMEM. */
int pb_follow_late_add(struct pb_follow *f, size_t index, const struct pb_chunk_ref *ref,
		       uint32_t read);
/* Forgets all late chunks. */
void pb_follow_late_drop(struct pb_follow *f);
#endif
