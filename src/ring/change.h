/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a writer comes from a full chunk to the next one, and hands the full one
 * over. For writer.c. Context of all: hit path, as in writer.h.
 *
 * Circle: a full chunk is changed in the middle of a write, and the first records of the new
 * one are written by the writer; what the three share is the writer's state.
 */
#ifndef PB_RING_CHANGE_H
#define PB_RING_CHANGE_H
#include "arch/arch.h"
#include "ring/writer.h"

#define PB_CHUNK_LIMIT	(PB_CHUNK_SIZE - PB_CHUNK_DEAD_ZONE)	/* records begin before it */

/* Stands for the chunk of a thread that has none: always full, never written. */
extern uint64_t pb_no_chunk;
extern uint64_t pb_no_leaf[2];

static inline uint64_t pb_chunk_of(uint64_t pos)
{
	return pos & -(uint64_t)PB_CHUNK_SIZE;
}

/* Whether the chunk is the thread's. In a child that a handler forked, the code that the handler
 * interrupted still has one of the parent's, which writes there. */
static inline bool pb_change_owns(const struct pb_writer *w, const struct pb_chunk *c)
{
	return *(const volatile uint32_t *)&c->serial == *(const volatile uint32_t *)&w->serial;
}

/* Puts a new chunk in force in place of the full one at that address. True also if
 * a handler did so meanwhile; false if there is none. `ending`: see
 * pb_writer_put_end(). */
bool pb_change_chunk(struct pb_writer *w, uint64_t full, const void *ending);
/* Makes base and leaf those of the chunk in force: a handler that left by a jump
 * may have interrupted what sets them. */
void pb_change_mend(struct pb_writer *w);
/* Hands over the chunk in force and all that were left, FULL. The writer has none
 * then. */
void pb_change_close(struct pb_writer *w);
#endif
