/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps of the drain thread; no other thread may call them unless a comment says
 * so. Each step ends, whatever the ring's writers do meanwhile. Private to src/reader.
 */
#ifndef PB_READER_DRAIN_PRIV_H
#define PB_READER_DRAIN_PRIV_H
#include "reader/drain.h"

static inline struct pb_chunk *pb_drain_chunk(struct pb_drain *d, uint32_t i)
{
	return (void *)((char *)d->ring + d->geometry.chunks_offset + (uint64_t)i * PB_CHUNK_SIZE);
}

/* The map of chunks that aren't free. */
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

/* Changes the state to READING: from then on, only the drain thread changes the state. */
static inline bool pb_drain_take(struct pb_chunk *c, uint32_t from)
{
	return __atomic_compare_exchange_n(&c->state, &from, PB_CHUNK_READING, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

int pb_drain_init(struct pb_drain *d);	/* 0 or -ENOMEM; fini in any case */
void pb_drain_fini(struct pb_drain *d);	/* leaves the results */

/* Updates `high`: how far chunks were ever used. */
void pb_drain_look(struct pb_drain *d);

/* One round: takes all FULL chunks, sets how many chunks the engines may use, and returns the
 * number of chunks taken. */
unsigned pb_drain_full(struct pb_drain *d);
/* Like pb_drain_full(), but FULL chunks stay in the ring (overwrite mode). */
void pb_drain_count(struct pb_drain *d);
/* Takes a chunk from a dead thread, if that thread still holds it. */
void pb_drain_take_from(struct pb_drain *d, uint32_t chunk, uint32_t serial);
void pb_drain_flush(struct pb_drain *d);
/* At the end of the session: writes everything that is left. */
void pb_drain_rest(struct pb_drain *d);

/* A chunk that is READING, and the state that it was taken in. */
struct pb_drain_taken {
	uint32_t index, state;
};
/* Orders chunks by the time of their last record. If memory is short, the order stays. */
void pb_drain_newest_first(const struct pb_drain *d, struct pb_drain_taken *list, uint32_t nr);

/* --- drain_supply.c: chunks for the engines --- */

struct pb_drain_round {
	unsigned taken;		/* chunks that were FULL */
	uint32_t held;		/* TAKEN, OPEN or HELD: threads hold these */
};
void pb_drain_supply(struct pb_drain *d, const struct pb_drain_round *r);
/* Called every 250 ms. A thread that has just started may hold no chunk yet. So new threads count
 * in addition to the chunks that threads hold. */
void pb_drain_serials(struct pb_drain *d);
/* Moves a chunk from READING to next_state. */
void pb_drain_release(struct pb_drain *d, uint32_t i, uint32_t next_state);
/* Gives memory to the chunks that engines will use next. False: these chunks have memory
 * already. */
bool pb_drain_ahead(struct pb_drain *d);
/* Gives back the memory of free chunks that are no longer needed. */
void pb_drain_trim(struct pb_drain *d);
/* Makes this thread the ring's owner: engines see at once when it dies. */
void pb_drain_own(struct pb_drain *d);
void pb_drain_disown(struct pb_drain *d);

/* --- drain_dead.c --- */

int pb_drain_dead_init(struct pb_drain *d);	/* 0 or -ENOMEM; fini in any case */
void pb_drain_dead_fini(struct pb_drain *d);
int pb_drain_dead_start(struct pb_drain *d);	/* the reaper; 0 or an error number */
void pb_drain_dead_stop(struct pb_drain *d);	/* after d->stop was set */
/* Called by the reaper: one look for chunks whose thread is dead. all: every thread is a suspect,
 * even if tgkill() finds it. */
void pb_drain_dead_look(struct pb_drain *d, bool all);
/* Called by the drain thread: takes the chunks that the reaper found. */
void pb_drain_dead_take(struct pb_drain *d);
#endif
