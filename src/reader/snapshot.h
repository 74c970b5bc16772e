/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies the chunks of a ring (abi/ring.h) into a new data directory, while threads write to the
 * ring. The copier changes nothing in the ring, so a read-only mapping is enough, and no thread
 * waits. Chunks that were overwritten while they were copied are left out; readers see a gap in the
 * chunks' `seq`.
 *
 * The images and modules that the chunks refer to are copied from the data directory of the
 * session.
 *
 * Context: any thread of the recorder, or of a client that got the ring from the recorder. Nothing
 * in the ring is trusted. The caller must have checked the geometry.
 */
#ifndef PB_READER_SNAPSHOT_H
#define PB_READER_SNAPSHOT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/ring.h"

#define PB_SNAPSHOT_COMM 16

struct pb_snapshot {
	/* The caller sets these. */
	const struct pb_ring *ring;	/* mapped; may be read-only */
	struct pb_ring geometry;
	int from;			/* descriptor of the session's data directory */
	bool newest;			/* copy only the newest chunk of each thread, which shows
					 * the thread's open calls */
	/* Finds the name of a thread. `index` is its row in the ring's table. If the name isn't
	 * known, *comm stays "". */
	void (*thread_name)(void *arg, uint32_t index, const struct pb_ring_thread *t,
			    char comm[PB_SNAPSHOT_COMM]);
	/* NULL, or a callback for `newest`: true if the thread is known to have ended. Such a
	 * thread may still have a FULL chunk with open calls; the chunk isn't copied. */
	bool (*thread_ended)(void *arg, uint32_t pid, uint32_t tid);
	void *arg;
	const char *why;		/* why the snapshot was taken, for `info' */

	/* The results. */
	uint64_t chunks, bytes;		/* number and size of the chunks that were copied */
	uint64_t missed;		/* number of chunks that were overwritten while they were
					 * copied */
	uint32_t threads;		/* number of threads that have ever recorded */
};

/* Makes the data directory `dir`. On failure, returns -errno with one line in err, and leaves no
 * directory. Otherwise returns 0. */
int pb_snapshot_write(struct pb_snapshot *s, const char *dir, char *err, size_t errlen);
#endif
