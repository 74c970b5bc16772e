/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine's side of the ring: a thread's place in its chunk, and how it
 * gets the next one. The format is abi/ring.h and abi/entries.h.
 *
 * Context of all functions: hit path (any thread, inside signal handlers, nested
 * in themselves); no system call, no lock, no libc. A writer belongs to one
 * thread. Only signal handlers of that thread run concurrently, so xadd and cmpxchg
 * without a lock prefix are atomic enough. A handler may interrupt each function
 * anywhere, and run all of these functions to their end.
 */
#ifndef PB_RING_WRITER_H
#define PB_RING_WRITER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/record.h"
#include "abi/ring.h"
#include "arch/arch.h"

#define PB_WRITER_LEFT		8	/* chunks that a writer has left and not handed over yet */
#define PB_WRITER_PENDING	16	/* interrupted activations that are tracked one by one */

/* Agent code that a signal handler has interrupted, and that may still write into
 * the chunk. After a hit of its thread at or above `limit` on the thread's own
 * stack, that code is gone and never goes on. */
struct pb_pending {
	uint64_t limit;		/* PB_NO_LIMIT: no hit shows that it is gone */
	uint64_t chunk;		/* in force when it was interrupted */
};
#define PB_NO_LIMIT	(~0ul)

struct pb_writer {
	uint64_t pos;		/* address of the next record */
	uint64_t base;		/* address of the chunk; 0 while the chunk changes */
	uint64_t last;		/* time of the record written last */
	uint64_t *leaf;		/* &chunk->leaf_start */
	struct pb_ring_thread *thread;	/* NULL: the ring's table is full */
	uint64_t seq;		/* number of the next chunk, while none is in force */
	uint64_t lost;		/* calls without any record in the data */
	uint64_t missed;	/* records that weren't written although their calls aren't lost */
	uint64_t no_return;
	uint64_t stack;
	uint64_t slot;		/* return slot of the hit that is being recorded */
	uint64_t own_lo, own_hi;	/* bounds of the thread's own stack; 0, 0: not known
					 * exactly */
	uint32_t serial, pid, tid, image, buffer;
	uint32_t backoff;	/* reservations that fail before the next search for a chunk */
	struct pb_chunk *left[PB_WRITER_LEFT];
	uint64_t taken;		/* the chunk that is being filled, and by which activation:
				 * change.c */
	uint64_t undone;	/* the chunk in which C code writes a record of several words */
	uint64_t nr_pending;
	struct pb_pending pending[PB_WRITER_PENDING];
};

/* This process's mapping of the ring; sizes as the observer sent them. */
struct pb_ring_map {
	struct pb_ring *ring;
	struct pb_ring_thread *threads;
	uint64_t *taken;
	uint8_t *chunks;
	uint64_t size;		/* of the mapping */
	uint32_t nr_threads, nr_chunks;
	uint32_t mode;		/* PB_RING_*; PB_RING_DISCARD once this process's reader is known
				 * to be gone */
};
extern struct pb_ring_map pb_ring_map;

/* Bits of pb_ring_unseen: signal handlers may run for which pb_writer_interrupted() isn't
 * called. While a bit is set, each chunk that is left is searched for holes. */
#define PB_UNSEEN_PROGRAM	1	/* the program may install handlers past sigaction() */
#define PB_UNSEEN_LIBC		2	/* libc's own handlers (thread cancellation, setxid) make
					 * traced calls */
extern uint8_t pb_ring_unseen;

/* The owner of what code stores that begins now. */
static inline struct pb_owner pb_writer_owner(const struct pb_writer *w)
{
	return (struct pb_owner){ &w->serial, *(const volatile uint32_t *)&w->serial };
}

/* False: a handler that interrupted the code has forked, and this is the child. The record that
 * the code was about to write is the parent's. */
static inline bool pb_writer_is(struct pb_owner o)
{
	return *(const volatile uint32_t *)o.now == o.serial;
}

/* Writes PB_EXT_OPEN records of the open calls to out, in a chunk of o's, and zeros to the rest of
 * its max words. Returns the number of words that are records. *depth: how many calls are
 * open in all. ending: the call of pb_writer_put_end(), which counts as open, or NULL.
 * Registered by the engine. */
extern size_t (*pb_ring_open_calls)(struct pb_writer *w, struct pb_owner o, uint64_t *out,
				    size_t max, uint32_t *depth, const void *ending);
extern uint64_t (*pb_ring_clock)(void);

/* Checks the sizes against `mapped` bytes, and sets pb_ring_map. 0 or -EINVAL. Context: start. */
int pb_ring_attach(void *base, uint64_t mapped, uint32_t nr_threads, uint32_t nr_chunks,
		   uint64_t threads_offset, uint64_t chunks_offset, uint32_t mode);

/* Initialises the writer of a new thread, and gives it a serial. The writer takes a
 * chunk at its first record. */
void pb_writer_init(struct pb_writer *w, uint32_t pid, uint32_t tid, uint32_t image);
/* Initialises the writer of a thread without a serial: it has no room for any record. */
void pb_writer_void(struct pb_writer *w);
/* For a writer whose thread is gone, or about to leave the image: its chunks become
 * FULL. If the thread writes again, it takes a new chunk. */
void pb_writer_close(struct pb_writer *w);

/* A signal handler begins. It interrupted the agent's code at the stack pointer sp,
 * and its return address is in `slot`. Whatever the interrupted code was doing, the
 * handler may write records, and may leave by a jump. If it returns, the result
 * is passed to pb_writer_resumed(). */
uint64_t pb_writer_interrupted(struct pb_writer *w, uint64_t sp, uint64_t slot);
void pb_writer_resumed(struct pb_writer *w, uint64_t nr);

/* Writes one record: `word`, to which it adds the time, then the payload. time_bits: the word's
 * time field is its uppermost 22, 28 or 42 bits. If the time doesn't fit, a PB_EXT_TIME record is
 * written before. False: there was no room, nothing was written, and a call was counted as lost. */
bool pb_writer_put(struct pb_writer *w, uint64_t word, uint64_t time, unsigned time_bits,
		   const uint64_t *payload, unsigned nr_payload);
/* Like pb_writer_put(), but for the ENTRY of a call. Without room nothing is counted: the call's
 * next callee, or its end, tries again. */
bool pb_writer_put_entry(struct pb_writer *w, uint64_t word, uint64_t time);
/* Like pb_writer_put(), but for the end of a call whose ENTRY is written. If the record is the
 * first of a chunk, the chunk's list of open calls includes the call. Without room a record is
 * counted as missed. */
bool pb_writer_put_end(struct pb_writer *w, uint64_t word, uint64_t time, unsigned time_bits,
		       const uint64_t *payload, unsigned nr_payload, const void *ending);
/* Writes a PB_EXT_LONG. Without room a call is counted as lost. */
bool pb_writer_put_long(struct pb_writer *w, uint32_t site, uint64_t start, uint64_t end);
/* Writes a PB_EXT_STACK, which has no time. Without room a record is counted as missed. */
bool pb_writer_put_stack(struct pb_writer *w, uint64_t stack);
/* Keeps the position in a full chunk's dead zone, however often the assembly tries,
 * and however often a handler leaves between a reservation and its test. */
void pb_writer_stay(struct pb_writer *w);
/* Notes in the chunk which call was entered last. */
void pb_writer_leaf(struct pb_writer *w, uint32_t site, uint64_t start);
void pb_writer_no_return(struct pb_writer *w);
/* Counts a record that isn't written, of a call that isn't lost. */
void pb_writer_missed(struct pb_writer *w);
/* Counts a call that isn't recorded: there is no room for its record, or for its parents'. */
void pb_writer_lost(struct pb_writer *w);
/* Like pb_writer_lost(), but for a thread that has no writer. */
void pb_ring_call_lost(void);
#endif
