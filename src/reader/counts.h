/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts calls for the recorder's closing line while chunks are written, so that
 * nothing has to be read again. If no record is missing, the counts are exact and
 * agree with every view. Otherwise see kept_calls.h.
 *
 * Context: the drain thread.
 */
#ifndef PB_READER_COUNTS_H
#define PB_READER_COUNTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/ring.h"

struct pb_counts_place {
	uint64_t seq, offset;	/* seq: the chunk's; offset: where the chunk is in the chunks
				 * file */
	uint32_t used;
};

/* A thread's first and last chunk, and the number of its chunks. */
struct pb_counts_thread {
	struct pb_counts_place first, last;
	uint32_t nr;
	uint64_t born;		/* clock of its first hit; 0: unknown. Set before
				 * pb_counts_finish() */
};

struct pb_counts {
	uint64_t leaves;	/* LEAF, LONG, CALL, FUNC */
	uint64_t begins;	/* ENTRY, and END of a call without ENTRY */
	uint64_t ends;		/* EXIT, END */
	uint64_t opened;	/* calls that the first chunk lists, and whose ENTRY is missing */
	uint64_t running;	/* leaves that ran at their thread's end */
	uint64_t inherited;	/* calls in leaves and begins that a child inherited by fork */
	uint64_t records;	/* all records that are events of the program */
	uint64_t chunks_missing; /* most missing chunks were overwritten */
};

/* Adds a chunk's records. The words may change meanwhile. */
void pb_counts_add(struct pb_counts *c, const uint64_t *words, size_t nr);

/* Notes a chunk that was written at that offset of its file. */
void pb_counts_chunk(struct pb_counts_thread *t, const struct pb_chunk *head, uint64_t offset);

/* Called at the end. Reads and decodes each thread's first and last chunk from chunks_fd, as some
 * counts need them. */
void pb_counts_finish(struct pb_counts *c, const struct pb_counts_thread *threads, uint32_t nr,
		      int chunks_fd);

/*
 * The number of calls. Each call counts once, even if only its beginning or only its end was kept.
 * A chunk lists a limited number of open calls: if more calls were open when the oldest chunk
 * began, only the ends of the unlisted calls are known.
 */
static inline uint64_t pb_counts_calls(const struct pb_counts *c, bool all_there)
{
	uint64_t begins = c->begins + c->opened;
	uint64_t through = all_there || begins > c->ends ? begins : c->ends;

	return c->leaves + through + c->running - c->inherited;
}
#endif
