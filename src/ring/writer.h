/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine's side of the ring: a thread's position in its chunk, and how the thread
 * gets the next chunk. The format is abi/ring.h and abi/entries.h.
 *
 * Context of all functions: hit path, that is, any thread, also inside signal
 * handlers. The functions make no system call, take no lock and don't use libc. A
 * writer belongs to one thread. Only signal handlers of that thread run concurrently,
 * so xadd and cmpxchg without a lock prefix are atomic enough. A handler may interrupt
 * any of these functions at any instruction, and run any of them to its end.
 */
#ifndef PB_RING_WRITER_H
#define PB_RING_WRITER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/record.h"
#include "abi/ring.h"
#include "arch/arch.h"

#define PB_WRITER_LEFT		8	/* largest number of chunks that a writer has left and not
					 * handed over yet */
#define PB_WRITER_PENDING	16	/* largest number of interruptions that are tracked one by
					 * one */

/* Agent code that a signal handler has interrupted. The code may still write into
 * `chunk`. When the thread has a hit at or above `limit` on its own stack, the code is
 * gone and never resumes. */
struct pb_pending {
	uint64_t limit;		/* PB_NO_LIMIT: no hit shows that the code is gone */
	uint64_t chunk;		/* the chunk in force when the code was interrupted */
};
#define PB_NO_LIMIT	(~0ul)

struct pb_writer {
	uint64_t pos;		/* address of the next record */
	uint64_t base;		/* address of the chunk in force, that is, of the chunk that holds
				 * pos; 0 during a change of chunks */
	uint64_t last;		/* time of the last written record */
	uint64_t *leaf;		/* address of leaf_start in the header of the chunk in force */
	struct pb_ring_thread *thread;	/* the thread's entry in the ring's table; NULL: the table
					 * is full */
	uint64_t seq;		/* number of the next chunk, while none is in force */
	uint64_t lost;		/* calls without any record in the data */
	uint64_t missed;	/* records that weren't written although their calls aren't lost */
	uint64_t no_return;
	uint64_t stack;
	uint64_t slot;		/* return slot of the hit that is being recorded */
	uint64_t own_lo, own_hi;	/* bounds of the thread's own stack; both 0: not known
					 * exactly */
	uint32_t serial, pid, tid, image, buffer;
	uint32_t backoff;	/* number of reservations to let fail before the next search for a
				 * chunk */
	uint64_t left[PB_WRITER_LEFT];	/* the chunks that the writer has left and not handed over
					 * yet: see change.c */
	uint64_t taken;		/* the chunk that change.c is filling, and where on the stack that
				 * code runs: see change.c */
	uint64_t undone;	/* the chunk in which C code writes a record of several words */
	uint64_t nr_pending;
	struct pb_pending pending[PB_WRITER_PENDING];
};

/* This process's mapping of the ring. The sizes are those that the observer sent. */
struct pb_ring_map {
	struct pb_ring *ring;
	struct pb_ring_thread *threads;
	uint64_t *taken;
	uint8_t *chunks;
	uint64_t size;		/* bytes of the mapping */
	uint32_t nr_threads, nr_chunks;
	uint32_t mode;		/* PB_RING_*. Becomes PB_RING_DISCARD when this process's recorder
				 * is known to be gone */
};
extern struct pb_ring_map pb_ring_map;

/* Bits of pb_ring_unseen: reasons why signal handlers may run without a call of
 * pb_writer_interrupted(). While a bit is set, a writer searches each chunk that it has left for
 * holes. */
#define PB_UNSEEN_PROGRAM	1	/* the program may install handlers without sigaction() */
#define PB_UNSEEN_LIBC		2	/* libc's own handlers (thread cancellation, setxid) make
					 * traced calls */
extern uint8_t pb_ring_unseen;

/* Code that stores into the writer's chunks calls this function first, and passes the result to
 * pb_own_store() and the other functions that store. */
static inline struct pb_owner pb_writer_owner(const struct pb_writer *w)
{
	return (struct pb_owner){ &w->serial, *(const volatile uint32_t *)&w->serial };
}

/* Returns false if a handler has interrupted this code and forked, and this process is the child.
 * The record that this code was about to write is the parent's. */
static inline bool pb_writer_is(struct pb_owner o)
{
	return *(const volatile uint32_t *)o.now == o.serial;
}

/* Writes PB_EXT_OPEN records of the open calls to out[], which has room for max words and lies in
 * one of o's chunks. Fills the rest of out[] with zeros. Returns the number of words of records.
 * *depth: the number of all open calls. ending: NULL, or the call of pb_writer_put_end(), which
 * counts as open. The engine registers this function. */
extern size_t (*pb_ring_open_calls)(struct pb_writer *w, struct pb_owner o, uint64_t *out,
				    size_t max, uint32_t *depth, const void *ending);
extern uint64_t (*pb_ring_clock)(void);

/* Checks the sizes against `mapped` bytes, and sets pb_ring_map. Returns 0 or -EINVAL. Context:
 * start. */
int pb_ring_attach(void *base, uint64_t mapped, uint32_t nr_threads, uint32_t nr_chunks,
		   uint64_t threads_offset, uint64_t chunks_offset, uint32_t mode);

/* Initialises the writer of a new thread, and gives it a serial. The writer takes a
 * chunk at its first record. */
void pb_writer_init(struct pb_writer *w, uint32_t pid, uint32_t tid, uint32_t image);
/* Initialises the writer of a thread without a serial: such a writer has no room for any record. */
void pb_writer_void(struct pb_writer *w);
/* Closes a writer whose thread is gone, or is about to leave the image. The writer's chunks become
 * FULL. If the thread writes again, it takes a new chunk. */
void pb_writer_close(struct pb_writer *w);

/* Called at the start of a signal handler that has interrupted the agent's code. sp:
 * the stack pointer of the interrupted code. slot: the address of the handler's
 * return address. The handler may have interrupted the code at any instruction. It may
 * write records, and may leave by a jump. If the handler returns, the caller passes
 * the result to pb_writer_resumed(). */
uint64_t pb_writer_interrupted(struct pb_writer *w, uint64_t sp, uint64_t slot);
void pb_writer_resumed(struct pb_writer *w, uint64_t nr);

/* Writes one record: `word` with the time added to it, then the payload. time_bits: the width of
 * the time field, which is the uppermost 22, 28 or 42 bits of the word. If the time doesn't fit, a
 * PB_EXT_TIME record is written first. False: there was no room. In that case nothing is written,
 * and a call is counted as lost. */
bool pb_writer_put(struct pb_writer *w, uint64_t word, uint64_t time, unsigned time_bits,
		   const uint64_t *payload, unsigned nr_payload);
/* Like pb_writer_put(), but for the ENTRY of a call. If there is no room, nothing is counted. When
 * the call makes another call, or ends, the engine tries to write the ENTRY again. */
bool pb_writer_put_entry(struct pb_writer *w, uint64_t word, uint64_t time);
/* Like pb_writer_put(), but for the end of a call whose ENTRY is written. If the record is the
 * first of a chunk, the chunk's list of open calls includes the call. If there is no room, a record
 * is counted as missed. */
bool pb_writer_put_end(struct pb_writer *w, uint64_t word, uint64_t time, unsigned time_bits,
		       const uint64_t *payload, unsigned nr_payload, const void *ending);
/* Writes a PB_EXT_LONG. If there is no room, a call is counted as lost. */
bool pb_writer_put_long(struct pb_writer *w, uint32_t site, uint64_t start, uint64_t end);
/* Writes a PB_EXT_STACK, which has no time. If there is no room, a record is counted as missed. */
bool pb_writer_put_stack(struct pb_writer *w, uint64_t stack);
/* Keeps the position in a full chunk's dead zone (PB_CHUNK_DEAD_ZONE). Each reservation moves the
 * position, even if a jump out of a handler then ends the code that reserved. Without this
 * function, many such reservations would move the position past the zone. */
void pb_writer_stay(struct pb_writer *w);
/* Notes in the chunk which call began last. */
void pb_writer_leaf(struct pb_writer *w, uint32_t site, uint64_t start);
void pb_writer_no_return(struct pb_writer *w);
/* Counts a record that isn't written although its call isn't lost. */
void pb_writer_missed(struct pb_writer *w);
/* Counts a call that isn't recorded: there is no room for its record, or for the records of its
 * parents. */
void pb_writer_lost(struct pb_writer *w);
/* Like pb_writer_lost(), but for a thread that has no writer. */
void pb_ring_call_lost(void);
#endif
