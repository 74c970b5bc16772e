/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shared memory of the ring. Its contents are untrusted, because agents write them. Context:
 * any thread. */
#ifndef PB_RECORDER_RING_MEMORY_H
#define PB_RECORDER_RING_MEMORY_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/messages.h"
#include "abi/ring.h"

struct record_ring {
	int fd;
	struct pb_ring *map;
	struct pb_ring geometry;
	dev_t dev;
	ino_t ino;
	_Atomic bool unlocked;	/* an agent got a descriptor of the ring that has no shared file
				 * lock of its own, so locks don't show whether somebody still maps
				 * the ring (record_procs_share()) */
	pid_t attached;		/* the process that was attached, which is older than the recorder;
				 * 0: none */
	bool foreign;		/* another process made the ring, so traced processes may be older
				 * than this one */
	_Atomic bool nested;	/* a traced process was seen in another pid namespace */
};
#define RECORD_NR_THREADS 65536
/* Makes the ring. `buffer` is the buffer's size in bytes, and `mode` is PB_RING_*. Sets all members
 * of *r; those that the ring doesn't determine are 0. Returns 0. On an error, prints one line and
 * returns 1. */
int record_ring_create(struct record_ring *r, uint64_t buffer, uint32_t mode);
/* Returns row i of the ring's table of threads. The row is untrusted. */
const struct pb_ring_thread *record_ring_thread(const struct record_ring *r, uint32_t i);
uint32_t record_ring_nr_threads(const struct record_ring *r);
/* Returns the number of calls that engines have counted as lost so far. Calls that the drain
 * discarded (pb_drain.discarded_calls) aren't among them. */
uint64_t record_ring_lost(const struct record_ring *r);
/* Returns the bytes of the chunks that are in use now, and PB_CHUNK_SIZE more for each time that a
 * chunk was overwritten. */
uint64_t record_ring_bytes(const struct record_ring *r);
/* Returns the message that is sent together with a descriptor of the ring. */
struct pb_msg_ring record_ring_message(const struct record_ring *r);
#endif
