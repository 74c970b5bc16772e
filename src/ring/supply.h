/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The supply of chunks: how a writer finds one that it may fill, and how long
 * it waits for one. Context of all: hit path, as in writer.h.
 */
#ifndef PB_RING_SUPPLY_H
#define PB_RING_SUPPLY_H
#include <stdbool.h>
#include <stdint.h>
#include "arch/arch.h"
#include "abi/ring.h"

/* The TSC, or 0 where it mustn't be read. Registered by the engine. */
extern uint64_t (*pb_supply_ticks)(void);

/* Takes a FREE chunk for its owner, and makes it TAKEN. If none is FREE, the ring's mode
 * decides: give up, take over a FULL chunk, or wait for the recorder until its heartbeat has
 * stood still for ring->wait_ticks. NULL: no chunk. */
struct pb_chunk *pb_supply_take(struct pb_owner o);

/* Changes a chunk's state and serial, which are one word, from the old pair to the new state with
 * the owner's serial. False: the chunk has another pair. Acquire and release. */
bool pb_chunk_change_state(struct pb_owner o, struct pb_chunk *c, uint32_t state, uint32_t serial,
			   uint32_t new_state);
#endif
