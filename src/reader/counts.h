/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts calls for the recorder's closing line while chunks are written. So at the end, only the
 * first and the last chunk of each thread have to be read again. If no record is missing, the
 * counts are exact and agree with every view. If chunks were overwritten, the counts may be too
 * low, and the recorder counts again with kept_calls.h.
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
	uint64_t seq, offset;	/* seq: the chunk's sequence number; offset: where the chunk is in
				 * the chunks file */
	uint32_t used;
};

/* A thread's first and last chunk, and the number of its chunks. */
struct pb_counts_thread {
	struct pb_counts_place first, last;
	uint32_t nr;
	uint64_t born;		/* time of the thread's first hit; 0: unknown. The drain must set it
				 * before it calls pb_counts_finish() */
};

struct pb_counts {
	uint64_t leaves;	/* records LEAF, TAIL_LEAF, LONG, CALL and FUNC */
	uint64_t begins;	/* records ENTRY, and records END of calls without an ENTRY */
	uint64_t ends;		/* records EXIT, TAIL and END */
	uint64_t opened;	/* calls that a thread's first chunk lists, and whose ENTRY is
				 * missing */
	uint64_t running;	/* calls without a traced callee that were still running when their
				 * thread's data ended */
	uint64_t inherited;	/* calls in `leaves` and `begins` that the process inherited by
				 * fork */
	uint64_t records;	/* all records that are events of the program */
	uint64_t chunks_missing; /* number of missing chunks; most of them were overwritten */
};

/* Adds a chunk's records. The words may change while this function reads them. */
void pb_counts_add(struct pb_counts *c, const uint64_t *words, size_t nr);

/* Notes a chunk that was written at `offset` of the chunks file. */
void pb_counts_chunk(struct pb_counts_thread *t, const struct pb_chunk *head, uint64_t offset);

/* Completes the counts, after the last chunk was written. Some counts need a thread's first and
 * last chunk, so this function reads these chunks from chunks_fd and decodes them. */
void pb_counts_finish(struct pb_counts *c, const struct pb_counts_thread *threads, uint32_t nr,
		      int chunks_fd);

/*
 * Returns the number of calls. If `all_there` is true, no chunk is missing, so the beginning of
 * every call was kept, and each call counts once. If chunks are missing, the result may be too low:
 * of some calls only the beginning is known, and of others only the end, because the oldest chunk
 * lists only a limited number of the calls that were open when it began. It isn't known how many
 * calls have both, so the larger of the two numbers is used.
 */
static inline uint64_t pb_counts_calls(const struct pb_counts *c, bool all_there)
{
	uint64_t begins = c->begins + c->opened;
	uint64_t through = all_there || begins > c->ends ? begins : c->ends;

	return c->leaves + through + c->running - c->inherited;
}
#endif
