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

#define PB_WRITER_LEFT		8	/* chunks that are left and not yet handed over */
#define PB_WRITER_PENDING	16	/* interrupted activations that are known one by one */

/* Code of the agent's that a signal handler has interrupted, and that may still
 * write into the chunk. It never goes on once its thread hits at or above
 * `limit` on its own stack. */
struct pb_pending {
	uint64_t limit;		/* PB_NO_LIMIT: that can't be known */
	uint64_t chunk;		/* in force then */
};
#define PB_NO_LIMIT	(~0ul)

struct pb_writer {
	uint64_t pos;		/* address of the next record */
	uint64_t base;		/* address of the chunk; 0 while it changes */
	uint64_t last;		/* time of the record written last */
	uint64_t *leaf;		/* &chunk->leaf_start */
	struct pb_ring_thread *thread;	/* NULL: the ring's table is full */
	uint64_t seq;		/* the next chunk's number, if none is in force */
	uint64_t lost;		/* calls of which nothing is in the data */
	uint64_t missed;	/* records that weren't written, of other calls */
	uint64_t no_return;
	uint64_t stack;
	uint64_t slot;		/* of the hit that is being recorded */
	uint64_t own_lo, own_hi;	/* the thread's own stack; 0, 0 if that isn't exactly
					 * known */
	uint32_t serial, pid, tid, image, buffer;
	uint32_t backoff;	/* reservations to fail before looking for a chunk again */
	struct pb_chunk *left[PB_WRITER_LEFT];
	uint64_t taken;		/* a chunk that isn't in force yet, and whose it is: change.c */
	uint64_t undone;	/* a chunk in which C code is writing several words */
	uint64_t nr_pending;
	struct pb_pending pending[PB_WRITER_PENDING];
};

/* This process's mapping of the ring; sizes as the observer sent them. */
struct pb_ring_map {
	struct pb_ring *ring;
	struct pb_ring_thread *threads;
	uint64_t *taken;
	uint8_t *chunks;
	uint32_t nr_threads, nr_chunks;
	uint32_t mode;		/* PB_RING_DISCARD from when this process' reader is known to be
				 * gone */
};
extern struct pb_ring_map pb_ring_map;

/* Handlers may run that pb_writer_interrupted() isn't called for: each chunk that is
 * left is searched for holes. */
#define PB_UNSEEN_PROGRAM	1	/* the program may install some past sigaction */
#define PB_UNSEEN_LIBC		2	/* libc's own (thread cancellation, setxid) make traced
					 * calls */
extern uint8_t pb_ring_unseen;

/* Fills out with PB_EXT_OPEN records of the calls that are open, at most max
 * words, and leaves zeros in the rest of them; *depth: how many are open in all. `ending`: of
 * pb_writer_put_end(), it is open as well. Registered by the engine. */
extern size_t (*pb_ring_open_calls)(struct pb_writer *w, uint64_t *out, size_t max,
				    uint32_t *depth, const void *ending);
extern uint64_t (*pb_ring_clock)(void);

/* Checks the sizes against `mapped` bytes. 0 or -EINVAL. Context: start. */
int pb_ring_attach(void *base, uint64_t mapped, uint32_t nr_threads, uint32_t nr_chunks,
		   uint64_t threads_offset, uint64_t chunks_offset, uint32_t mode);

/* A new thread's writer: gives it a serial. It takes a chunk when it first
 * writes. */
void pb_writer_init(struct pb_writer *w, uint32_t pid, uint32_t tid, uint32_t image);
/* No record of this writer's has room: that of a thread without a serial. */
void pb_writer_void(struct pb_writer *w);
/* Its thread is gone, or about to leave the image: its chunks become FULL. It
 * may write again, into a new one. */
void pb_writer_close(struct pb_writer *w);

/* A handler begins, which interrupted the agent's code at that stack pointer, and
 * whose return address stands in `slot`. Whatever the interrupted code was doing,
 * the handler may write records, and may leave by a jump. Returns what
 * pb_writer_resumed() is called with when the handler returns. */
uint64_t pb_writer_interrupted(struct pb_writer *w, uint64_t sp, uint64_t slot);
void pb_writer_resumed(struct pb_writer *w, uint64_t nr);

/* One record: `word` (whose time bits are empty), at `time`, then payload words.
 * time_bits: 22, 28 or 42, the record's field; its shift follows. A PB_EXT_TIME
 * goes before it if the time doesn't fit. False: there was no room, and
 * nothing was written. Then pb_writer_put() has counted a call as lost. */
bool pb_writer_put(struct pb_writer *w, uint64_t word, uint64_t time, unsigned time_bits,
		   const uint64_t *payload, unsigned nr_payload);
/* The ENTRY of a call: without it the call isn't lost, it is tried again. */
bool pb_writer_put_entry(struct pb_writer *w, uint64_t word, uint64_t time);
/* The end of a call whose ENTRY is there: if it becomes a chunk's first record, the
 * chunk's list names the call. Without room it is counted as missed. */
bool pb_writer_put_end(struct pb_writer *w, uint64_t word, uint64_t time, unsigned time_bits,
		       const uint64_t *payload, unsigned nr_payload, const void *ending);
/* PB_EXT_LONG: counts as pb_writer_put(). */
bool pb_writer_put_long(struct pb_writer *w, uint32_t site, uint64_t start, uint64_t end);
/* PB_EXT_STACK, which has no time; counts as missed. */
bool pb_writer_put_stack(struct pb_writer *w, uint64_t stack);
/* Keeps the position in a full chunk's dead zone, however often the assembly tries,
 * and however often a handler leaves between a reservation and its test. */
void pb_writer_stay(struct pb_writer *w);
void pb_writer_no_return(struct pb_writer *w);
/* A call that isn't recorded, as there is no room for it or for what it needs. */
void pb_writer_lost(struct pb_writer *w);
/* The same for a thread that has no writer. */
void pb_ring_call_lost(void);
#endif
