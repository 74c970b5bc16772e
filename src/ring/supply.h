/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The supply of chunks: how a writer finds a chunk that it may fill, and how long it
 * waits for a chunk. Context of all functions: hit path, as in writer.h.
 */
#ifndef PB_RING_SUPPLY_H
#define PB_RING_SUPPLY_H
#include <stdbool.h>
#include <stdint.h>
#include "arch/arch.h"
#include "abi/ring.h"

/* Returns the TSC, or 0 where the TSC mustn't be read. The engine sets this pointer. */
extern uint64_t (*pb_supply_ticks)(void);

/* Takes a FREE chunk for the owner o, and makes it TAKEN. If no chunk is FREE, the ring's mode
 * decides: give up, take over a FULL chunk, or wait for the recorder. NULL: no chunk. A wait ends
 * without a chunk in these cases:
 *
 *   - the session ends, or the ring's mode changes
 *   - a handler has forked, and this process is the child
 *   - the recorder dies
 *   - the recorder sends no heartbeat for ring->wait_ticks
 *   - threads hold all chunks, and no waiting thread gets a chunk for ring->wait_ticks
 *
 * If a wait ended because there was no heartbeat, later waits of the process end at once until the
 * next heartbeat. If a wait ended because threads hold all chunks, later waits end at once as long
 * as threads hold all chunks.
 */
struct pb_chunk *pb_supply_take(struct pb_owner o);

/* Changes a chunk's state and serial, which are one word. The old values are `state` and `serial`;
 * the new ones are new_state and the owner's serial. False: the chunk has other values, or this
 * process is a child in which `o` is no longer the owner (pb_writer_is()). Memory order: acquire
 * and release. */
bool pb_chunk_change_state(struct pb_owner o, struct pb_chunk *c, uint32_t state, uint32_t serial,
			   uint32_t new_state);
#endif
