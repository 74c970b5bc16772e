/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies the open chunks of a ring to the file `open` of the data directory while their threads
 * write to them. The drain writes a chunk only when the chunk is full. A thread that makes one call
 * in a second fills a chunk in half an hour. With the copies, the thread's calls reach the file
 * after about half a second, and they remain if the recorder is killed.
 *
 * A copy is a prefix of the chunk: it ends before the first record that isn't complete. While a
 * record isn't complete, its first word is zero or a placeholder (UNDONE, abi/entries.h). The
 * thread writes the record's own first word last (doc/design/writer.md). So a record that has its
 * own first word is complete, and its words never change again. A later copy only adds words.
 *
 * The copier only reads the ring, and doesn't disturb threads. During the copy, another thread may
 * begin a new chunk in the same memory. So after the copy, the copier checks that the chunk is
 * still open, and that its serial, its seq and its count of uses are the same as before the copy.
 *
 * The file has a header, then slots of PB_CHUNK_SIZE bytes. A slot whose chunk has been written to
 * `chunks` is used again. Until the slot is used again, it has an old copy. The old copy harms no
 * reader: if two chunks have the same serial and seq, the reader uses the larger chunk. At the end
 * of a recording, the file is removed.
 *
 * In overwrite mode nothing is copied, because even full chunks stay in the ring until the end.
 *
 * Context: the observer. The copies are made by a separate thread.
 */
#ifndef PB_READER_OPEN_CHUNKS_H
#define PB_READER_OPEN_CHUNKS_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "abi/record.h"
#include "abi/ring.h"
#include "reader/data.h"

struct pb_drain;

/* The copy of an open chunk. */
struct pb_open_chunk {
	struct pb_chunk head;	/* as in the file; serial 0: the slot is free */
	uint32_t listed;	/* bytes of the list of open calls at the chunk's start */
	uint32_t chunk;		/* the chunk's index in the ring */
	uint64_t last, latest;	/* last: the time from which the next record's time is computed.
				 * latest: the largest time of a record that was copied. The times
				 * in a chunk may go back */
	bool incomplete;	/* after the copied words comes a record that wasn't complete */
	bool full;		/* the chunk isn't open any more, and isn't in `chunks` yet */
};

struct pb_open_chunks {
	/* The caller sets these before pb_open_chunks_start(). */
	struct pb_drain *drain;
	/* NULL, or a callback that the thread calls after each round. No slot changes until the
	 * callback returns. With a callback, there are ten rounds in a second; without, two. The
	 * callback returns false if the next round need not copy anything. */
	bool (*round)(void *arg, const struct pb_open_chunks *o);
	void *arg;

	uint64_t clock;			/* TSC at the start of the last round. All records that were
					 * written before this time are in `open` or in `chunks`,
					 * except those after an incomplete record, and those in
					 * full chunks that the drain hasn't written yet */
	struct pb_open_chunk *slots;
	uint32_t nr_slots;
	uint64_t rounds;

	/* private */
	int fd;
	uint32_t *slot_of;		/* [nr_chunks] 1 + the slot, or 0 */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool running, stop;
};

/* Returns a reference to the slot's copy in the file `open`. */
static inline struct pb_chunk_ref pb_open_chunk_ref(const struct pb_chunk *head, uint32_t slot)
{
	return (struct pb_chunk_ref){
		.offset = (slot + 1ull) * PB_CHUNK_SIZE | PB_CHUNK_REF_OPEN,
		.seq = head->seq, .start = head->start, .serial = head->serial, .used = head->used,
	};
}

/* True if the header's open leaf still runs: all copied records are earlier than its start. */
static inline bool pb_open_chunk_leaf(const struct pb_open_chunk *s)
{
	return s->head.leaf_start > s->latest && s->head.leaf_site &&
	       s->head.leaf_site <= PB_SITE_MASK;
}

/* Makes the file and starts the thread. Returns 0 or -errno. In overwrite mode, nothing starts. */
int pb_open_chunks_start(struct pb_open_chunks *o);
/* Ends the thread. Must be called before the drain ends. */
void pb_open_chunks_stop(struct pb_open_chunks *o);
/* Removes the file. Must be called only when all data is in `chunks`. */
void pb_open_chunks_remove(struct pb_open_chunks *o);
#endif
