/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The supply of chunks: how a writer finds one that it may fill, and how long
 * it waits for one. Context of all: hit path, as in writer.h.
 */
#ifndef PB_RING_SUPPLY_H
#define PB_RING_SUPPLY_H
#include <stdbool.h>
#include <stdint.h>
#include "abi/ring.h"

/* The TSC, or 0 where it mustn't be read. Registered by the engine. */
extern uint64_t (*pb_supply_ticks)(void);

/* A chunk that is TAKEN by the thread of that serial, or NULL. The mode says
 * whether that means searching for a while, taking over a FULL one, or waiting
 * for the recorder, 200 ms from its last sign of life. */
struct pb_chunk *pb_supply_take(uint32_t serial);

/* Changes a chunk's state and serial, which are one word, from the old pair to
 * the new one. False: the pair was another. Acquire and release. */
bool pb_chunk_change_state(struct pb_chunk *c, uint32_t state, uint32_t serial, uint32_t new_state,
			   uint32_t new_serial);
#endif
