/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A queue of the headers of the chunks that the drain has written, for a reader in the same process
 * that follows the recording. The reader then needs no system call for each chunk. If the reader is
 * slow and the queue is full, headers are left out, and the reader must read them from the file.
 *
 * Only the drain thread puts headers, and only one reader gets them. The drain thread stores `put`
 * with release after the element is complete. The reader stores `got` with release after it has
 * copied the element.
 */
#ifndef PB_READER_DRAIN_HEADS_H
#define PB_READER_DRAIN_HEADS_H
#include <stdatomic.h>
#include <stdbool.h>
#include "abi/ring.h"

#define PB_DRAIN_HEADS 8192

struct pb_drain_heads {
	_Atomic uint64_t put, got;
	struct { uint64_t offset; struct pb_chunk head; } at[PB_DRAIN_HEADS];
};

static inline void pb_drain_heads_put(struct pb_drain_heads *q, const struct pb_chunk *head,
				      uint64_t offset)
{
	uint64_t put = atomic_load_explicit(&q->put, memory_order_relaxed);

	if (put - atomic_load_explicit(&q->got, memory_order_acquire) == PB_DRAIN_HEADS)
		return;
	q->at[put % PB_DRAIN_HEADS].offset = offset;
	q->at[put % PB_DRAIN_HEADS].head = *head;
	atomic_store_explicit(&q->put, put + 1, memory_order_release);
}

/* Gets the header of the chunk at this offset of the file. The caller's offsets must ascend. False
 * if the queue doesn't have it. */
static inline bool pb_drain_heads_get(struct pb_drain_heads *q, uint64_t offset,
				      struct pb_chunk *head)
{
	uint64_t got = atomic_load_explicit(&q->got, memory_order_relaxed);
	uint64_t put = atomic_load_explicit(&q->put, memory_order_acquire);
	bool found = false;

	while (got != put && q->at[got % PB_DRAIN_HEADS].offset < offset)
		got++;
	if (got != put && q->at[got % PB_DRAIN_HEADS].offset == offset) {
		*head = q->at[got++ % PB_DRAIN_HEADS].head;
		found = true;
	}
	atomic_store_explicit(&q->got, got, memory_order_release);
	return found;
}
#endif
