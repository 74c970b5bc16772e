/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a writer goes from a full chunk to the next one, and hands the full chunk over. The chunk in
 * force is the chunk in which the writer reserves its records. Only writer.c uses these functions.
 * Context of all functions: hit path, as in writer.h.
 *
 * Circle: writer.c and change.c need each other. writer.c calls change.c in the middle of a write.
 * change.c and supply.c use the writer's state and the ring's mapping, which writer.h declares.
 */
#ifndef PB_RING_CHANGE_H
#define PB_RING_CHANGE_H
#include "arch/arch.h"
#include "ring/writer.h"

#define PB_CHUNK_LIMIT	(PB_CHUNK_SIZE - PB_CHUNK_DEAD_ZONE)	/* records begin before this
								 * offset */

/* While a thread has no chunk, pb_no_chunk stands for its chunk, and pb_no_leaf for the words of
 * the chunk's header that show an open leaf. The chunk at pb_no_chunk counts as full, and is never
 * written. */
extern uint64_t pb_no_chunk;
extern uint64_t pb_no_leaf[2];

static inline uint64_t pb_chunk_of(uint64_t pos)
{
	return pos & -(uint64_t)PB_CHUNK_SIZE;
}

/* Puts a new chunk in force in place of the chunk at `full`. Returns true also if a handler has put
 * another chunk in force meanwhile. False: the writer got no chunk. `ending`: see
 * pb_writer_put_end(). */
bool pb_change_chunk(struct pb_writer *w, struct pb_owner o, uint64_t full, const void *ending);
/* Sets base and leaf for the chunk in force. A handler that left by a jump may have
 * interrupted the code that sets them. */
void pb_change_mend(struct pb_writer *w);
/* Makes the chunk in force and all chunks in left[] FULL. After this call the writer has no
 * chunk. */
void pb_change_close(struct pb_writer *w);
#endif
