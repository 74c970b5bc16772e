/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Empties a ring (abi/ring.h) into a data directory while the program runs.
 *
 * Three threads: the drain thread moves chunks. The heartbeat thread only shows
 * waiting engines that a reader lives, so that they don't mistake a slow disk for
 * a dead recorder. The reaper looks for chunks whose thread is dead (drain_dead.c).
 * Everything in the ring is untrusted: headers are copied, then checked; geometry
 * comes from our own copy.
 *
 *   state      what the drain thread does                        when
 *   FULL       -> READING, write, -> FREE                        always; overwrite mode: at the end
 *   OPEN HELD  -> READING, write, -> FREE (overwrite: -> FULL)   its thread is dead
 *   OPEN HELD  -> READING, write, stays READING                  at the end
 *
 * In overwrite mode all chunks are written at the end, newest first (drain_newest.c).
 * The oldest, for which max_size leaves no room, count as overwritten.
 *
 * At the end FULL chunks are freed once; after that no chunk is freed any more:
 * a thread that still runs may write into its open chunk, and no other thread
 * may get it.
 */
#ifndef PB_DRAIN_H
#define PB_DRAIN_H
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "abi/ring.h"
#include "reader/counts.h"
#include "reader/datadir_writer.h"

/* A thread that the ring names. */
struct pb_drain_thread {
	uint32_t tid;			/* as engines wrote it; may be a number of another pid
					 * namespace */
	bool alive;			/* set by threads_alive(): the thread lives or may live */
	uint64_t seen;			/* the thread had started by this time (CLOCK_BOOTTIME,
					 * ns) */
};

struct pb_drain {
	/* set by the caller before pb_drain_start */
	struct pb_ring *ring;		/* mapped, read-write */
	int ring_fd;
	struct pb_ring geometry;	/* trusted: made by us */
	struct pb_datadir *datadir;
	uint64_t max_size;		/* largest size of the chunks file; 0: no limit */
	/* Sets `alive' of the threads that live or may live. Returns false if the search was
	 * incomplete. Returns soon once *stop is set. The reaper calls it, for suspects only. NULL:
	 * all suspects are dead. */
	bool (*threads_alive)(void *arg, struct pb_drain_thread *threads, unsigned nr,
			      const _Atomic bool *stop);
	void *arg;

	/* results; except the atomics, only the drain thread may use them until it is joined */
	_Atomic uint64_t bytes;		/* size of the chunks file */
	_Atomic uint64_t records;
	_Atomic bool full;		/* max_size reached */
	_Atomic int error;		/* -errno of a write that failed for good */
	struct pb_counts counts;	/* counts of the records that were kept */
	uint64_t discarded_calls;	/* calls in chunks that weren't written: max_size was
					 * reached, the disk was full, or the chunk named no valid
					 * thread */
	uint64_t overwritten_calls;	/* overwrite mode: calls in the oldest chunks, for which
					 * max_size leaves no room */
	uint32_t *discarded;		/* [nr_threads] by serial - 1 */

	/* private */
	pthread_t thread, heart;
	_Atomic bool stop;
	_Atomic uint32_t high;		/* only chunks below this one may have been used */
	uint32_t ahead;			/* the buffer's chunks below this one have memory */
	uint32_t serials[2];		/* next_serial as it was at most 250 ms ago, and at most 500
					 * ms ago */
	uint32_t most_usable;		/* the most chunks that engines might use since memory was
					 * last given back */
	struct robust_list_head robust;	/* by this list the kernel notifies engines of the
					 * recorder's death */
	struct robust_list robust_entry;
	struct pb_drain_dead *dead;
	struct pb_counts_thread *lasts;	/* [nr_threads] by serial - 1 */
	struct pb_drain_batch *batch;
};

int pb_drain_start(struct pb_drain *d);	/* 0 or -errno */
/* Ends the session: waiters give up, everything that is left is written. */
void pb_drain_finish(struct pb_drain *d);
#endif
