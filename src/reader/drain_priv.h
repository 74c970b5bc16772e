/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps of the drain thread, one after the other: one thread only. Each
 * ends, whatever the ring's writers do meanwhile. Inside src/reader.
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

/* To READING: nobody else changes it then. */
static inline bool pb_drain_take(struct pb_chunk *c, uint32_t from)
{
	return __atomic_compare_exchange_n(&c->state, &from, PB_CHUNK_READING, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

int pb_drain_init(struct pb_drain *d);	/* 0 or -ENOMEM; fini in any case */
void pb_drain_fini(struct pb_drain *d);	/* leaves the results */

/* Looks how far chunks were ever used. */
void pb_drain_look(struct pb_drain *d);

/* One round over the FULL chunks; returns how many were taken. Supplies chunks for
 * those that threads hold. */
unsigned pb_drain_full(struct pb_drain *d);
/* The same where the FULL ones stay (overwrite mode). */
void pb_drain_count(struct pb_drain *d);
/* Takes a chunk of a thread that is dead, if it still is that thread's. */
void pb_drain_take_from(struct pb_drain *d, uint32_t chunk, uint32_t serial);
void pb_drain_flush(struct pb_drain *d);
/* The end of the session: everything that is left. */
void pb_drain_rest(struct pb_drain *d);

/* A chunk that is READING, and the state that it was taken in. */
struct pb_drain_taken {
	uint32_t index, state;
};
/* Orders chunks by the time of their last record. Without memory the order stays. */
void pb_drain_newest_first(const struct pb_drain *d, struct pb_drain_taken *list, uint32_t nr);

/* --- drain_supply.c: chunks for the engines --- */

struct pb_drain_round {
	unsigned taken;		/* chunks that were FULL */
	uint32_t held;		/* TAKEN, OPEN or HELD: in the hands of threads */
};
void pb_drain_supply(struct pb_drain *d, const struct pb_drain_round *r);
/* Each 250 ms: a thread that is as new as that may have no chunk yet, and counts
 * besides those that hold one. */
void pb_drain_serials(struct pb_drain *d);
/* A chunk that is READING goes to that state. */
void pb_drain_release(struct pb_drain *d, uint32_t i, uint32_t next_state);
/* Memory for the chunks that are used next, before engines come to them. False if
 * they had it. */
bool pb_drain_ahead(struct pb_drain *d);
/* Gives memory of free chunks back that aren't used any more. */
void pb_drain_trim(struct pb_drain *d);
/* The ring's owner is this thread: engines see at once when it dies. */
void pb_drain_own(struct pb_drain *d);
void pb_drain_disown(struct pb_drain *d);

/* --- drain_dead.c --- */

int pb_drain_dead_init(struct pb_drain *d);	/* 0 or -ENOMEM; fini in any case */
void pb_drain_dead_fini(struct pb_drain *d);
int pb_drain_dead_start(struct pb_drain *d);	/* the reaper; 0 or an error number */
void pb_drain_dead_stop(struct pb_drain *d);	/* after d->stop was set */
/* The reaper's step: one look for chunks whose thread is dead. all: doubts all threads, also
 * those that are found. */
void pb_drain_dead_look(struct pb_drain *d, bool all);
/* The drain thread's: takes what the reaper found. */
void pb_drain_dead_take(struct pb_drain *d);
#endif
