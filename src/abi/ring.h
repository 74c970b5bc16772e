/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The shared memory between the engine (in the target) and the reader.
 *
 *   offset 0                 struct pb_ring                      (one page)
 *   ring->threads_offset     struct pb_ring_thread[nr_threads]
 *   after it, aligned to 64  uint64_t taken[], a bit for each chunk
 *   ring->chunks_offset      chunk 0, chunk 1, ... each PB_CHUNK_SIZE bytes:
 *                            struct pb_chunk, then records (entries.h)
 *
 * One ring serves a whole session: every process that is traced, through fork
 * and exec. The observer creates it (a memfd, sized and sealed against
 * shrinking), the engine maps it. The engine only trusts its own copy of the
 * sizes; the reader trusts nothing it reads.
 *
 * States of a chunk, and the owner of each transition:
 *
 *        engine         engine               engine
 *   FREE ------> TAKEN ------> OPEN ----------------------------> FULL
 *    ^             |           |  \                               ^ |
 *    |             |           |   `--> HELD ---------------------' |
 *    |   reader: its thread    |         |  engine: left with holes; |
 *    |   is dead   |           |         |  FULL when they are filled|
 *    |             v           v         v                          v
 *    `------------------- READING <------'--------------------------'
 *          reader                            reader
 *
 * Each transition is a cmpxchg, but those from READING are a store-release of the
 * reader. An engine may also give a chunk back: TAKEN or OPEN -> FREE.
 *
 * Overwrite mode: an engine takes over FULL chunks (FULL -> TAKEN). The reader makes
 * a dead thread's chunk FULL (READING -> FULL).
 *
 * - The release in the change to FULL publishes the data. The reader finds out itself
 *   how much there is: up to the last word that isn't zero.
 * - `used` is the size of the data when the chunk became OPEN. If an OPEN chunk has no
 *   more data than that, and no leaf_start, it holds nothing. It may never have become its
 *   thread's current chunk, and another chunk may have the same `seq`.
 * - An engine zeroes a TAKEN chunk, unless it was never used (`uses` == 0).
 * - If a reader dies, its READING chunks are not used again. Nothing else is lost.
 *
 * A chunk that isn't FREE has its bit in taken[] set. So both sides find chunks without
 * a look at each one. The engine sets the bit before it changes FREE to TAKEN, and then
 * checks that the bit is still set. To free a READING chunk, the reader clears the bit, then
 * stores FREE. If the bit of a FREE chunk is set, an engine is about to take the chunk,
 * or was stopped there, or gave the chunk back. The reader takes such a chunk (READING)
 * and frees it.
 *
 * Chunks below nr_buffer are the buffer, those from nr_buffer to nr_chunks the reserve.
 * An engine uses the chunks below pb_ring_usable(): as many as the buffer has, and one
 * more for each chunk that a thread holds. So idle threads take nothing from other threads.
 */
#ifndef PB_ABI_RING_H
#define PB_ABI_RING_H

#define PB_RING_MAGIC		0x31474e4952425031ull	/* "1PBRING1" */
#define PB_RING_VERSION		1
#define PB_CHUNK_SIZE		16384
#define PB_CHUNK_HEADER		128
#define PB_CHUNK_DEAD_ZONE	512	/* a record begins before it, and may end in it */

#define PB_CHUNK_OPEN_MAX	128	/* most PB_EXT_OPEN records at a chunk's start; if more
					 * calls are open, they list the innermost */

#define PB_CHUNK_FREE		0
#define PB_CHUNK_OPEN		1
#define PB_CHUNK_FULL		2
#define PB_CHUNK_READING	3
#define PB_CHUNK_HELD		4
#define PB_CHUNK_TAKEN		5

#define PB_RING_DISCARD		0	/* no free chunk: drop and count */
#define PB_RING_OVERWRITE	1	/* no free chunk: take the oldest full one */
#define PB_RING_WAIT		2	/* no free chunk: wait for the reader */

#ifndef __ASSEMBLER__
#include <stdint.h>

struct pb_chunk {
	uint32_t state;
	uint32_t serial;	/* of the thread, unique in the session; one 64-bit cmpxchg changes
				 * it with `state`, so that a writer recognises its own chunks */
	uint32_t buffer;	/* buffer id: instances and snapshots; 0 = the main one */
	uint32_t image;		/* program image (one per exec), names the site table */
	uint32_t pid, tid;
	uint32_t used;		/* bytes of data; in the ring: when the chunk became OPEN */
	uint32_t depth;		/* calls open (with their ENTRY written) at `start` */
	uint64_t seq;		/* 0, 1, 2 ... per thread; a gap means chunks overwritten or lost */
	uint64_t start;		/* clock; the decoder's first `last` */
	uint64_t stack;		/* stack that the first records belong to */
	uint64_t lost;		/* total of calls that the thread lost before this chunk */
	uint64_t no_return;	/* total of the thread's calls that were recorded without their
				 * return */
	/* The open leaf: the call that was entered last, and may still run without an ENTRY.
	 * It is stale if a record with a later time follows. leaf_start is written last. */
	uint64_t leaf_start;
	uint32_t leaf_site;
	uint32_t missed;	/* total of the thread's records that weren't written although their
				 * calls aren't lost */
	uint32_t uses;		/* times this chunk was opened */
	uint32_t pad[9];
};
_Static_assert(sizeof(struct pb_chunk) == PB_CHUNK_HEADER, "chunk header");

/* Kept for each thread that ever recorded; written by its thread only. */
struct pb_ring_thread {
	uint32_t serial;	/* 0 = unused */
	uint32_t pid, tid;
	uint32_t image;
	uint64_t lost;		/* total of the thread's calls without any record */
	uint64_t no_return;
	uint64_t start;		/* clock of its first hit */
	uint64_t parent;	/* serial of the thread that forked it, 0 if unknown */
	uint64_t missed;	/* records that weren't written although their calls aren't lost */
	uint64_t unused;
};
_Static_assert(sizeof(struct pb_ring_thread) == 64, "ring thread");

struct pb_ring {
	/* written by the observer before any process maps it */
	uint64_t magic;
	uint32_t version, mode;			/* PB_RING_* */
	uint32_t nr_threads, nr_chunks;
	uint64_t threads_offset, chunks_offset, size;
	uint64_t wait_ticks;			/* TSC ticks without a heartbeat after which the
						 * reader counts as gone */
	uint32_t wait_pauses;			/* the same time, in pauses, for where the TSC
						 * mustn't be read */
	uint32_t nr_buffer;
	/* written by the engines */
	_Alignas(64) uint32_t next_serial;	/* fetch_add; serial = old + 1 */
	uint32_t next_chunk;			/* overwrite mode: the next chunk to take over,
						 * round robin */
	uint32_t threads_lost;			/* threads that found no pb_ring_thread */
	uint32_t processes;			/* images started and children forked */
	uint32_t latched;			/* an engine turned itself off; reason below */
	char latch_reason[100];
	uint64_t max_stop_ns;	/* the longest stop for a change of text */
	/* counts for threads that have no pb_ring_thread, or no state in their process */
	uint64_t calls_lost, calls_no_return;
	uint64_t chunks_overwritten;	/* overwrite mode: FULL chunks that were taken over */
	/* for a recorder that doesn't answer in time */
	uint64_t silent;	/* 1 + the heartbeat at which an engine gave up; no engine waits
				 * for an answer until the heartbeat changes */
	uint32_t missed_modules, missed_images;		/* not traced because the recorder didn't
							 * answer in time */
	uint32_t waits_in_vain;	/* PB_RING_WAIT: how often a writer gave up waiting for a chunk,
				 * because the heartbeat stood still */
	uint32_t sandboxed_images;	/* not traced, because a seccomp filter was set before
					 * their exec */
	/* written by the observer */
	_Alignas(64) uint64_t heartbeat;	/* changes at least each 100 ms while it runs */
	uint32_t closing;			/* session ends: waiters give up, and count */
	uint32_t owner;				/* TID of the heartbeat's thread; the kernel adds
						 * PB_OWNER_DIED when it dies */
	uint64_t usable;			/* number of chunks | next_serial when it was
						 * counted << 32 */
	uint32_t free_word;			/* hint: the first word of taken[] with a free
						 * chunk; both sides write it */
	uint64_t heartbeat_ns;			/* CLOCK_MONOTONIC of the heartbeat, as the observer
						 * reads it */
};
_Static_assert(sizeof(struct pb_ring) <= 4096, "one page");

#define PB_OWNER_DIED	0x40000000u	/* FUTEX_OWNER_DIED */

/* The offset of taken[], and its size in words. */
static inline uint64_t pb_ring_taken_offset(uint64_t threads_offset, uint32_t nr_threads)
{
	return (threads_offset + nr_threads * sizeof(struct pb_ring_thread) + 63) & ~63ull;
}

static inline uint64_t pb_ring_taken_words(uint32_t nr_chunks)
{
	return ((uint64_t)nr_chunks + 63) / 64;
}

/* How many chunks may be in use, at most nr: `usable`, and one for each thread that
 * was created since. */
static inline uint32_t pb_ring_usable(const struct pb_ring *ring, uint32_t nr)
{
	uint64_t word = __atomic_load_n(&ring->usable, __ATOMIC_RELAXED);
	uint32_t more = __atomic_load_n(&ring->next_serial, __ATOMIC_RELAXED) -
			(uint32_t)(word >> 32);
	uint64_t all = (uint64_t)(uint32_t)word + more;

	return all < 1 ? 1 : all < nr ? (uint32_t)all : nr;
}
#endif
#endif
