/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine's side of the ring: this process's mapping, and the state of one thread's writer. The
 * format is abi/ring.h and abi/entries.h. Context: as in writer.h. */
#ifndef PB_RING_RING_MAP_H
#define PB_RING_RING_MAP_H
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
	uint64_t no_return;	/* calls that are recorded without their return */
	uint64_t stack;		/* id of the machine stack that the next records belong to */
	uint64_t slot;		/* return slot of the hit that is being recorded */
	uint64_t own_lo, own_hi;	/* bounds of the thread's own stack; both 0: not known
					 * exactly */
	uint32_t serial, pid, tid, image, buffer;
	uint32_t backoff;	/* number of reservations to let fail before the next search for a
				 * chunk */
	uint64_t left[PB_WRITER_LEFT];	/* the chunks that the writer has left and not handed over
					 * yet: see change.c */
	uint64_t taken;		/* high half: 1 + the index of the chunk that change.c prepares; low
				 * half: the place on the stack where that code runs. 0: none. See
				 * change.c */
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
	uint32_t used_below;	/* this process may have used the chunks below this index, and no
				 * others */
	uint32_t mode;		/* PB_RING_*. Becomes PB_RING_DISCARD when this process's recorder
				 * is known to be gone */
};
extern struct pb_ring_map pb_ring_map;

/* Bits of pb_ring_unseen: reasons why signal handlers may run without a call of
 * pb_writer_interrupted(). While a bit is set, a writer looks for holes in each chunk that it has
 * left. */
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
 * *depth: the number of open calls that have an ENTRY, even if out[] has no room for all of them.
 * ending: NULL, or the traced call whose end pb_writer_put_end() writes. This call counts as open.
 * The engine registers this function. */
extern size_t (*pb_ring_open_calls)(struct pb_writer *w, struct pb_owner o, uint64_t *out,
				    size_t max, uint32_t *depth, const void *ending);
/* Returns the time for records. The engine registers this function, too. */
extern uint64_t (*pb_ring_clock)(void);

/* While a thread has no chunk, pb_no_chunk stands for its chunk, and pb_no_leaf for the words of
 * the chunk's header that show an open leaf. The chunk at pb_no_chunk counts as full, and is never
 * written. */
extern uint64_t pb_no_chunk;
extern uint64_t pb_no_leaf[2];

/* Checks the sizes against `mapped` bytes, and sets pb_ring_map. Returns 0 or -EINVAL. Context:
 * start. */
int pb_ring_attach(void *base, uint64_t mapped, uint32_t nr_threads, uint32_t nr_chunks,
		   uint64_t threads_offset, uint64_t chunks_offset, uint32_t mode);

/* Notes that this process is about to touch the chunk with this index. Returns false if the chunk
 * must not be touched, because it isn't mapped, or is being unmapped. */
bool pb_ring_touch(uint32_t index);
/* Gives up chunks that this process hasn't touched yet, but none with an index below nr_chunks.
 * Returns the address from which on the mapping isn't used any more. Context: one thread at a
 * time; any signal handler or thread may take chunks meanwhile. */
uint64_t pb_ring_cut(uint32_t nr_chunks);
#endif
