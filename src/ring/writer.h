/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine's side of the ring: a thread's place in its chunk, and how it
 * gets the next one. The format is abi/ring.h and abi/entries.h.
 *
 * All functions: context hit path (any thread, inside signal handlers, nested
 * in themselves); no system call, no lock, no libc. A writer belongs to one
 * thread; its signal handlers are the only concurrency, so that plain xadd
 * and cmpxchg are atomic enough. Every function may be interrupted anywhere by
 * one that runs all of them to their end.
 */
#ifndef PB_RING_WRITER_H
#define PB_RING_WRITER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/record.h"
#include "abi/ring.h"

#define PB_WRITER_HELD	4

struct pb_writer {
	uint64_t pos;		/* address of the next record */
	uint64_t base;		/* address of the chunk; 0 while it changes */
	uint64_t last;		/* time of the record written last */
	uint64_t *leaf;		/* &chunk->leaf_start */
	struct pb_chunk *chunk;	/* NULL: none yet */
	struct pb_ring_thread *thread;
	uint64_t seq, lost, lost_told, no_return, stack;
	uint32_t serial, pid, tid, image, buffer;
	uint32_t backoff;	/* reservations to fail before looking for a chunk again */
	uint32_t interrupted;	/* handlers under way that came while we ran: there may be holes */
	struct pb_chunk *held[PB_WRITER_HELD];
};

/* This process's mapping of the ring; sizes as the observer told them. */
struct pb_ring_map {
	struct pb_ring *ring;
	struct pb_ring_thread *threads;
	uint8_t *chunks;
	uint32_t nr_threads, nr_chunks;
	uint32_t mode;		/* PB_RING_DISCARD from when this process' reader is known to be gone */
};
extern struct pb_ring_map pb_ring_map;

/* Handlers may run that pb_writer.interrupted doesn't count: holes are looked for in
 * each chunk that is closed. */
#define PB_UNSEEN_PROGRAM	1	/* the program may install some past sigaction */
#define PB_UNSEEN_LIBC		2	/* libc's own (thread cancellation, setxid) make traced calls */
extern uint8_t pb_ring_unseen;

/* Fills out with PB_EXT_OPEN records of the calls that are open, at most max
 * words, and leaves zeros in the rest of them; *depth: how many are open in all. `ending`: of pb_writer_put_end(), it
 * is open as well. Registered by the engine. */
extern size_t (*pb_ring_open_calls)(struct pb_writer *w, uint64_t *out, size_t max,
				    uint32_t *depth, const void *ending);
extern uint64_t (*pb_ring_clock)(void);

/* Checks the sizes against `mapped` bytes. 0 or -EINVAL. Context: start. */
int pb_ring_attach(void *base, uint64_t mapped, uint32_t nr_threads, uint32_t nr_chunks,
		   uint64_t threads_offset, uint64_t chunks_offset, uint32_t mode);

/* A new thread's writer: gives it a serial. It takes a chunk when it first
 * writes. */
void pb_writer_init(struct pb_writer *w, uint32_t pid, uint32_t tid, uint32_t image);
/* Its thread is gone, or about to leave the image: its chunks become FULL. It
 * may write again, into a new one. */
void pb_writer_close(struct pb_writer *w);

/* One record: `word` (whose time bits are empty), at `time`, then payload
 * words. time_bits: 22, 28 or 42, the record's field; its shift follows. A
 * PB_EXT_TIME goes in front where the time doesn't fit. Counts the record lost
 * if there is no room. */
void pb_writer_put(struct pb_writer *w, uint64_t word, uint64_t time, unsigned time_bits,
		   const uint64_t *payload, unsigned nr_payload);
/* The same for the end of a call that a reader knows to be open: if it is a
 * chunk's first record, the chunk's list names the call. */
void pb_writer_put_end(struct pb_writer *w, uint64_t word, uint64_t time, unsigned time_bits,
		       const uint64_t *payload, unsigned nr_payload, const void *ending);
/* As PB_EXT_LONG or PB_EXT_STACK: no time of its own; last becomes `last`. */
void pb_writer_put_plain(struct pb_writer *w, uint64_t word, uint64_t last,
			 const uint64_t *payload, unsigned nr_payload);
/* Where nothing is to be written any more: keeps the position in a full chunk's
 * dead zone, however often the assembly tries. */
void pb_writer_stay(struct pb_writer *w);
void pb_writer_no_return(struct pb_writer *w);
#endif
