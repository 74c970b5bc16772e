/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps of the drain thread. Another thread may call a step only if the step's comment names
 * that thread. The functions whose names end in init, fini, start or stop run in the thread that
 * calls pb_drain_start() or pb_drain_finish(). Each step terminates, whatever the ring's writers do
 * meanwhile. Private to src/reader.
 */
#ifndef PB_READER_DRAIN_PRIV_H
#define PB_READER_DRAIN_PRIV_H
#include "reader/drain.h"

static inline struct pb_chunk *pb_drain_chunk(struct pb_drain *d, uint32_t i)
{
	return (void *)((char *)d->ring + d->geometry.chunks_offset + (uint64_t)i * PB_CHUNK_SIZE);
}

/* Returns the map of taken chunks: a bit is set for each chunk that isn't free. */
static inline uint64_t *pb_drain_taken(struct pb_drain *d)
{
	return (void *)((char *)d->ring + pb_ring_taken_offset(d->geometry.threads_offset,
							       d->geometry.nr_threads));
}

static inline bool pb_drain_is_taken(struct pb_drain *d, uint32_t i)
{
	return __atomic_load_n(&pb_drain_taken(d)[i / 64], __ATOMIC_ACQUIRE) >> i % 64 & 1;
}

static inline uint32_t pb_drain_state(struct pb_chunk *c)
{
	return __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);
}

/* Changes the state from `from` to READING. After that, only the drain thread changes the state. */
static inline bool pb_drain_take(struct pb_chunk *c, uint32_t from)
{
	return __atomic_compare_exchange_n(&c->state, &from, PB_CHUNK_READING, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

int pb_drain_init(struct pb_drain *d);	/* Returns 0 or -ENOMEM. Even after an error, the caller
					 * must call pb_drain_fini() */
void pb_drain_fini(struct pb_drain *d);	/* doesn't free the results */

/* --- drain_chunks.c --- */

int pb_drain_chunks_init(struct pb_drain *d);	/* Returns 0 or -ENOMEM. Even after an error, the
						 * caller must call pb_drain_chunks_fini() */
void pb_drain_chunks_fini(struct pb_drain *d);
/* Updates `high`: only chunks below this index may have been used. */
void pb_drain_look(struct pb_drain *d);

/* Makes one round: takes all FULL chunks, sets how many chunks the engines may use, and returns the
 * number of chunks that were taken. */
unsigned pb_drain_full(struct pb_drain *d);
/* Does what pb_drain_full() does, but FULL chunks stay in the ring (overwrite mode). */
void pb_drain_count(struct pb_drain *d);
/* Takes the chunk from the dead thread with this serial, if that thread still holds it. */
void pb_drain_take_from(struct pb_drain *d, uint32_t chunk, uint32_t serial);
/* Writes the chunks that were taken, and frees them. */
void pb_drain_flush(struct pb_drain *d);
/* At the end of the session: writes all remaining chunks. */
void pb_drain_rest(struct pb_drain *d);

/* A chunk that is READING, and its state before that. */
struct pb_drain_taken {
	uint32_t index, state;
};
/* Orders chunks by the time of their last record, newest first. If memory is short, the order stays
 * as it is. */
void pb_drain_newest_first(const struct pb_drain *d, struct pb_drain_taken *list, uint32_t nr);
/* Returns the time of the chunk's last event. The chunk is decoded to find the event. */
uint64_t pb_drain_last_time(const struct pb_drain *d, uint32_t i);

/* --- drain_supply.c: chunks for the engines --- */

struct pb_drain_round {
	unsigned taken;		/* number of FULL chunks that the round has taken */
	uint32_t held;		/* number of chunks that threads hold: TAKEN, OPEN or HELD */
};
void pb_drain_supply(struct pb_drain *d, const struct pb_drain_round *r);
/* Notes how many threads have started so far. Called every 250 ms. pb_drain_supply() lets engines
 * use one more chunk for each chunk that a thread holds. But some new threads hold no chunk yet. To
 * make room for new threads, pb_drain_supply() stores in the ring the number that was noted 250 to
 * 500 ms ago. For each thread that has started since that time, engines may use one more chunk
 * (pb_ring_usable()). */
void pb_drain_serials(struct pb_drain *d);
/* Moves a chunk from READING to next_state. If next_state is READING, does nothing. */
void pb_drain_release(struct pb_drain *d, uint32_t i, uint32_t next_state);
/* Gives memory to some of the chunks that engines will use next. Returns false if enough of these
 * chunks already have memory. */
bool pb_drain_ahead(struct pb_drain *d);
/* Gives back the memory of chunks that are no longer needed: of free chunks, and in overwrite mode
 * of FULL chunks that no engine would take over. */
void pb_drain_trim(struct pb_drain *d);
/* The heartbeat thread calls the next two functions. pb_drain_own() makes the calling thread the
 * ring's owner (`owner` in abi/ring.h), until pb_drain_disown(). If the owner dies, the kernel
 * notes this in the ring, so engines see it at once. */
void pb_drain_own(struct pb_drain *d);
void pb_drain_disown(struct pb_drain *d);

/* --- drain_dead.c --- */

int pb_drain_dead_init(struct pb_drain *d);	/* Returns 0 or -ENOMEM. Even after an error, the
						 * caller must call pb_drain_dead_fini() */
void pb_drain_dead_fini(struct pb_drain *d);
int pb_drain_dead_start(struct pb_drain *d);	/* starts the reaper; returns 0 or an error
						 * number */
void pb_drain_dead_stop(struct pb_drain *d);	/* must be called after d->stop was set */
/* Called by the reaper: one look for chunks whose thread is dead. If `all` is true, the chunks of
 * every thread are suspects, even of threads that tgkill() finds. */
void pb_drain_dead_look(struct pb_drain *d, bool all);
/* Called by the drain thread: takes the chunks that the reaper found. */
void pb_drain_dead_take(struct pb_drain *d);
#endif
