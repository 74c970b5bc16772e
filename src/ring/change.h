/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a writer goes from a full chunk to the next one, and hands the full chunk over. The chunk in
 * force is the chunk in which the writer reserves its records. Context of all functions: hit path,
 * as in writer.h.
 */
#ifndef PB_RING_CHANGE_H
#define PB_RING_CHANGE_H
#include "ring/ring_map.h"

#define PB_CHUNK_LIMIT	(PB_CHUNK_SIZE - PB_CHUNK_DEAD_ZONE)	/* records begin before this
								 * offset */

static inline uint64_t pb_chunk_of(uint64_t pos)
{
	return pos & -(uint64_t)PB_CHUNK_SIZE;
}

/* Puts a new chunk in force in place of the chunk at `full`. Returns true also if a handler has put
 * another chunk in force meanwhile. False: the writer got no chunk. `ending`: see
 * pb_writer_put_end(). */
bool pb_change_chunk(struct pb_writer *w, struct pb_owner o, uint64_t full, const void *ending);
/* Sets base and leaf for the chunk in force. Also called when a handler may have interrupted
 * the code that sets them, and may have left by a jump. */
void pb_change_mend(struct pb_writer *w);
/* Makes the chunk in force and all chunks in left[] FULL. After this call the writer has no
 * chunk. */
void pb_change_close(struct pb_writer *w);

/* Keeps the position in a full chunk's dead zone (PB_CHUNK_DEAD_ZONE). Each reservation moves the
 * position, even if a jump out of a handler then ends the code that reserved. Without this
 * function, many such reservations would move the position past the zone. */
void pb_writer_stay(struct pb_writer *w);

/* Called at the start of a signal handler that has interrupted the agent's code. sp:
 * the stack pointer of the interrupted code. slot: the address of the handler's
 * return address. The handler may have interrupted the code at any instruction. It may
 * write records, and may leave by a jump. If the handler returns, the caller passes
 * the result to pb_writer_resumed(). */
uint64_t pb_writer_interrupted(struct pb_writer *w, uint64_t sp, uint64_t slot);
void pb_writer_resumed(struct pb_writer *w, uint64_t nr);
#endif
