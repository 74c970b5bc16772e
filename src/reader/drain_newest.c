/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Orders the chunks of a ring in overwrite mode by age. In this mode, all chunks are written at the
 * end of the session, newest first. So if --max-size or a full disk leaves no room, the oldest
 * chunks are dropped, as in the ring itself.
 *
 * A chunk is as new as its last record. The thread's next chunk starts at the time of that record,
 * so the next chunk's header has the time. A thread's last chunk has no next chunk. The last chunk
 * has to be decoded, since the thread may have opened it long ago and still write to it. With this
 * order, each thread keeps its newest chunks without a gap. The kept records of all threads begin
 * at about the same time.
 *
 * With --clock=none there are no times, and each thread keeps the same number of chunks.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "reader/decode.h"
#include "reader/drain_priv.h"

struct aged {
	struct pb_drain_taken taken;
	uint32_t serial;
	uint64_t seq, start, end;
	uint32_t later;			/* how many chunks of the same thread are newer */
};

static int by_thread(const void *a, const void *b)
{
	const struct aged *x = a, *y = b;

	if (x->serial != y->serial)
		return x->serial < y->serial ? -1 : 1;
	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int newest_first(const void *a, const void *b)
{
	const struct aged *x = a, *y = b;

	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	if (x->later != y->later)
		return x->later < y->later ? -1 : 1;
	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static struct pb_chunk header(const struct pb_drain *d, uint32_t i)
{
	const struct pb_chunk *c = (const void *)((char *)d->ring + d->geometry.chunks_offset +
						  (uint64_t)i * PB_CHUNK_SIZE);
	struct pb_chunk head;

	memcpy(&head, c, sizeof(head));
	pb_barrier();		/* the result must depend on the copy, because the original may
				 * still change */
	return head;
}

uint64_t pb_drain_last_time(const struct pb_drain *d, uint32_t i)
{
	struct pb_chunk head = header(d, i);
	struct pb_chunk_ref ref = {
		.offset = d->geometry.chunks_offset + (uint64_t)i * PB_CHUNK_SIZE,
		.seq = head.seq, .serial = head.serial, .used = PB_CHUNK_SIZE - PB_CHUNK_HEADER,
	};
	struct pb_image unknown = { 0 };
	struct pb_data data = { .chunks_fd = d->ring_fd, .chunks = &ref, .nr_chunks = 1,
				.images = &unknown, .nr_images = 1, .unnoted = true };
	struct pb_thread thread = { .serial = head.serial, .nr = 1 };
	struct pb_stacks *stacks = pb_stacks_new();
	struct pb_cursor cursor;
	uint64_t last = head.start;
	struct pb_event ev;

	if (stacks && !pb_cursor_init(&cursor, &data, stacks, &thread, PB_CHUNK_SIZE)) {
		while (pb_cursor_next(&cursor, &ev))
			last = ev.time > last ? ev.time : last;
		pb_cursor_free(&cursor);
	}
	pb_stacks_free(stacks);
	return last;
}

static struct aged age(const struct pb_drain *d, struct pb_drain_taken t)
{
	struct pb_chunk head = header(d, t.index);

	return (struct aged){ .taken = t, .serial = head.serial, .seq = head.seq,
		.start = head.start, .end = head.start };
}

void pb_drain_newest_first(const struct pb_drain *d, struct pb_drain_taken *list, uint32_t nr)
{
	/* If all chunks fit under --max-size, the order matters only if the disk becomes full. An
	 * approximate order is enough then, so the threads' last chunks aren't decoded. */
	bool exact = d->max_size &&
		     d->datadir->chunks_size + (uint64_t)nr * PB_CHUNK_SIZE > d->max_size;
	struct aged *aged = calloc(nr + 1ul, sizeof(*aged));

	if (!aged)
		return;
	for (uint32_t i = 0; i < nr; i++)
		aged[i] = age(d, list[i]);
	qsort(aged, nr, sizeof(*aged), by_thread);
	for (uint32_t i = nr; i--;) {
		if (i + 1 < nr && aged[i + 1].serial == aged[i].serial) {
			aged[i].later = aged[i + 1].later + 1;
			aged[i].end = aged[i + 1].start;
		} else if (exact) {
			aged[i].end = pb_drain_last_time(d, aged[i].taken.index);
		}
	}
	qsort(aged, nr, sizeof(*aged), newest_first);
	for (uint32_t i = 0; i < nr; i++)
		list[i] = aged[i].taken;
	free(aged);
}
