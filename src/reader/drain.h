/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Empties a ring (abi/ring.h) into a data directory while the program runs.
 *
 * There are three threads. The drain thread moves chunks. The heartbeat thread only shows that the
 * recorder lives. Without this thread, a waiting engine would take a recorder with a slow disk for
 * dead. The reaper looks for chunks whose thread is dead (drain_dead.c). Nothing in the ring is
 * trusted. Headers are copied, and then the copies are checked. The ring's geometry comes from the
 * recorder's own copy.
 *
 *   state           what the drain thread does       when
 *   FULL            -> READING, write, -> FREE       always, except in overwrite mode
 *   OPEN HELD       -> READING, write, -> FREE       its thread is dead
 *   OPEN HELD       -> READING -> FULL               its thread is dead, in overwrite mode
 *   TAKEN           -> READING -> FREE               its thread is dead
 *   FULL OPEN HELD  -> READING, write                at the end: the chunk stays READING
 *
 * An OPEN chunk without records isn't written. It becomes FREE, or stays READING at the end.
 *
 * In overwrite mode all chunks are written at the end, newest first (drain_newest.c). If max_size
 * leaves no room for the oldest chunks, these chunks count as overwritten.
 *
 * When the session ends, FULL chunks are written and freed for the last time (not in overwrite
 * mode). After that, the remaining chunks are written and stay READING. A thread that still runs
 * may write into its open chunk. If that chunk were freed, another thread could get it.
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
	uint32_t tid;			/* the number that the engine wrote; it may belong to
					 * another pid namespace */
	bool alive;			/* threads_alive() sets it if the thread lives or may
					 * live */
	uint64_t seen;			/* the thread started at this time or earlier
					 * (CLOCK_BOOTTIME, ns) */
};

struct pb_drain {
	/* The caller sets these before pb_drain_start(). */
	struct pb_ring *ring;		/* mapped, read-write */
	int ring_fd;
	struct pb_ring geometry;	/* trusted, because the recorder made it */
	struct pb_datadir *datadir;
	bool followed;			/* a reader wants the headers of chunks (drain_heads.h) */
	uint64_t max_size;		/* largest size of the chunks file; 0: no limit */
	/* This function sets `alive` of each thread that lives or may live. It returns false if the
	 * search was incomplete. After *stop is set, it must return soon. Only the reaper calls it,
	 * and only for threads that may be dead. If the pointer is NULL, all these threads count as
	 * dead. */
	bool (*threads_alive)(void *arg, struct pb_drain_thread *threads, unsigned nr,
			      const _Atomic bool *stop);
	void *arg;

	/* The results. Until the drain thread is joined, other threads may use only the atomics
	 * among them. */
	_Atomic uint64_t bytes;		/* size of the chunks file */
	_Atomic uint64_t records;
	_Atomic uint64_t passes;	/* number of completed passes over the ring. A pass moves
					 * all chunks that were FULL when it began, and sets
					 * `bytes` */
	_Atomic bool full;		/* max_size reached */
	_Atomic int error;		/* -errno of a write that failed and won't be repeated */
	struct pb_counts counts;	/* counts of the records that were kept */
	_Atomic uint64_t discarded_calls; /* number of calls in chunks that weren't written:
					 * max_size was reached, a write failed, or the chunk named
					 * no thread. Doesn't include overwritten_calls */
	uint64_t overwritten_calls;	/* overwrite mode: number of calls in the oldest chunks, for
					 * which max_size left no room */
	uint64_t *discarded;		/* number of discarded calls of each thread in the ring's
					 * table; the index is the serial minus 1 */

	_Atomic uint64_t done;		/* number of bytes at the start of the chunks file whose
					 * space the reader (`patchbay live`) has given back to the
					 * file system. They don't count for max_size */

	struct pb_drain_heads *heads;	/* NULL unless `followed`; freed by pb_drain_finish() */

	/* private */
	pthread_t thread, heart;
	_Atomic bool stop;
	_Atomic uint32_t high;		/* only chunks below this index may have been used */
	uint32_t ahead;			/* the ring's chunks below this index have memory */
	uint32_t serials[2];		/* two older values of next_serial: about 250 ms old, and
					 * about 500 ms old */
	uint32_t most_usable;		/* the largest number of chunks that engines were allowed to
					 * use since memory was last given back */
	struct robust_list_head robust;	/* if the recorder dies, the kernel notifies engines by this
					 * list */
	struct robust_list robust_entry;
	struct pb_drain_dead *dead;
	struct pb_counts_thread *lasts;	/* the first and the last chunk of each thread; the index is
					 * the serial minus 1 */
	uint32_t nr_lasts;		/* the highest serial that has a chunk */
	struct pb_drain_batch *batch;
};

int pb_drain_start(struct pb_drain *d);	/* Returns 0 or -errno. After an error, everything is freed,
					 * and the caller must not call pb_drain_finish() */
/* Tells all processes that the recording ends. From now on, no thread of theirs waits for the
 * recorder or for room in the ring. Calls that find no room are counted as lost. */
void pb_drain_close_ring(const struct pb_drain *d);
/* Ends the session: waiting engines give up, and all remaining chunks are written. */
void pb_drain_finish(struct pb_drain *d);
#endif
