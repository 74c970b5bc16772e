/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps of the drain thread, one after the other: one thread only. Each
 * ends, whatever the ring's writers do meanwhile. Inside src/reader.
 */
#ifndef PB_READER_DRAIN_PRIV_H
#define PB_READER_DRAIN_PRIV_H
#include "reader/drain.h"

int pb_drain_init(struct pb_drain *d);	/* 0 or -ENOMEM; fini in any case */
void pb_drain_fini(struct pb_drain *d);	/* leaves the results */

/* Looks how far chunks were ever used. */
void pb_drain_look(struct pb_drain *d);
/* One round over the FULL chunks; returns how many were taken. */
unsigned pb_drain_full(struct pb_drain *d);
/* One look for chunks whose thread is dead. zombies: those count as dead. */
void pb_drain_dead(struct pb_drain *d, bool zombies);
/* The end of the session: everything that is left. */
void pb_drain_rest(struct pb_drain *d);

/* A chunk that is READING, and the state that it was taken in. */
struct pb_drain_taken {
	uint32_t index, state;
};
/* Orders chunks by the time of their last record. Without memory the order stays. */
void pb_drain_newest_first(const struct pb_drain *d, struct pb_drain_taken *list, uint32_t nr);
#endif
