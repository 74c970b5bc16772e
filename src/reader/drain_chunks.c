/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The steps of the drain thread that move chunks from the ring to the file. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/record.h"
#include "base/base.h"
#include "reader/drain_heads.h"
#include "reader/drain_priv.h"

#define BATCH		64		/* number of chunks in one write: 1 MiB */
#define DATA_MAX	(PB_CHUNK_SIZE - PB_CHUNK_HEADER)

struct pb_drain_batch {
	int nr;
	uint32_t index[BATCH];
	struct pb_chunk head[BATCH];	/* checked copies */
	struct iovec iov[2 * BATCH];
};

/* --- moving chunks ------------------------------------------------------ */

/* The call that a thread entered last before it went on to this chunk is recorded in this chunk,
 * and is lost with it. So the thread's last written chunk must not name it as still running. */
static void forget_leaf(const struct pb_drain *d, const struct pb_chunk *head)
{
	const struct pb_counts_thread *t = &d->lasts[head->serial - 1];
	const uint32_t none = 0;

	if (t->nr && head->seq == t->last.seq + 1)
		pwrite(d->datadir->chunks_fd, &none, sizeof(none),
		       (off_t)(t->last.offset + offsetof(struct pb_chunk, leaf_site)));
}

/* Counts the calls that are lost with a chunk. If there is no room for a chunk, all later chunks
 * are discarded, too. So a call is lost if it began in a discarded chunk. In overwrite mode, chunks
 * are written newest first, so all older chunks are discarded, too. In that mode, a call is lost if
 * it ended in a discarded chunk. */
static void discard(struct pb_drain *d, const struct pb_chunk *head, const void *data)
{
	struct pb_counts c = { 0 };
	uint64_t calls;

	pb_counts_add(&c, data, head->used / 8);
	if (d->geometry.mode == PB_RING_OVERWRITE && d->full && !d->error) {
		d->overwritten_calls += c.leaves + c.ends;
		return;
	}
	calls = c.leaves + (d->geometry.mode == PB_RING_OVERWRITE ? c.ends : c.begins);
	d->discarded_calls += calls;
	if (!head->serial || head->serial > d->geometry.nr_threads)
		return;
	d->discarded[head->serial - 1] += calls;
	if (calls)
		forget_leaf(d, head);
}

static uint64_t chunk_bytes(const struct pb_drain_batch *b, int i)
{
	return b->iov[2 * i].iov_len + b->iov[2 * i + 1].iov_len;
}

/* Writes the batch. Returns how many of its chunks were written: all chunks, or only the chunks
 * before the limit or before an error. If one write of all chunks fails, writes each chunk alone,
 * so that the chunks before the error are kept. */
static int batch_write(struct pb_drain *d, struct pb_drain_batch *b)
{
	uint64_t bytes = 0;
	int n = 0;

	if (d->full || d->error)
		return 0;
	for (; n < b->nr; n++) {
		uint64_t more = chunk_bytes(b, n);

		if (d->max_size && d->datadir->chunks_size - d->done + bytes + more > d->max_size) {
			d->full = true;
			break;
		}
		bytes += more;
	}
	if (!n || !pb_datadir_chunks(d->datadir, b->iov, 2 * n, bytes))
		return n;
	for (int i = 0; i < n; i++) {
		int ret = pb_datadir_chunks(d->datadir, b->iov + 2 * i, 2, chunk_bytes(b, i));

		if (ret) {
			d->error = ret;
			return i;
		}
	}
	return n;
}

static void note_chunk(struct pb_drain *d, const struct pb_chunk *head, uint64_t offset)
{
	if (d->heads)
		pb_drain_heads_put(d->heads, head, offset);
	if (head->serial && head->serial <= d->geometry.nr_threads) {
		pb_counts_chunk(&d->lasts[head->serial - 1], head, offset);
		if (head->serial > d->nr_lasts)
			d->nr_lasts = head->serial;
	}
}

static void batch_flush(struct pb_drain *d, uint32_t next_state)
{
	struct pb_drain_batch *b = d->batch;

	if (!b->nr)
		return;
	uint64_t offset = d->datadir->chunks_size;
	int written = batch_write(d, b);
	for (int i = 0; i < written; i++) {
		pb_counts_add(&d->counts, b->iov[2 * i + 1].iov_base,
			      b->iov[2 * i + 1].iov_len / 8);
		note_chunk(d, &b->head[i], offset);
		offset += chunk_bytes(b, i);
	}
	for (int i = written; i < b->nr; i++)
		discard(d, &b->head[i], b->iov[2 * i + 1].iov_base);
	d->bytes = d->datadir->chunks_size;
	d->records = d->counts.records;
	for (int i = 0; i < b->nr; i++)
		pb_drain_release(d, b->index[i], next_state);
	b->nr = 0;
}

/* Returns the number of bytes up to the last word that isn't zero. */
static uint32_t used_of_data(const struct pb_chunk *c)
{
	const uint64_t *words = (const void *)(c + 1);
	uint32_t n = DATA_MAX / 8;

	while (n && !__atomic_load_n(&words[n - 1], __ATOMIC_RELAXED))
		n--;
	return n * 8;
}

/* True if an OPEN chunk has no records. Its thread may never have used the chunk (abi/ring.h). */
static bool holds_nothing(const struct pb_chunk *c)
{
	return !c->leaf_start && used_of_data(c) <= c->used;
}

/* Adds a chunk to the batch. The chunk is READING, and `state` is its previous state. Two kinds of
 * chunks are released without being written: an OPEN chunk without records, and a chunk that names
 * no thread. Readers would take the header of the latter for the file's end, so its calls count as
 * lost. */
static void batch_add(struct pb_drain *d, uint32_t i, uint32_t state, uint32_t next_state)
{
	struct pb_drain_batch *b = d->batch;
	struct pb_chunk *c = pb_drain_chunk(d, i), *head = &b->head[b->nr];

	memcpy(head, c, sizeof(*head));
	pb_barrier();
	head->state = state;
	if (state == PB_CHUNK_OPEN && holds_nothing(c)) {
		pb_drain_release(d, i, next_state);
		return;
	}
	head->used = used_of_data(c);
	if (!head->serial) {
		discard(d, head, c + 1);
		pb_drain_release(d, i, next_state);
		return;
	}
	b->index[b->nr] = i;
	b->iov[2 * b->nr] = (struct iovec){ head, sizeof(*head) };
	b->iov[2 * b->nr + 1] = (struct iovec){ c + 1, head->used };
	if (++b->nr == BATCH)
		batch_flush(d, next_state);
}

/*
 * Sets `high` to the index after the highest chunk that has memory. Only chunks below `high` are
 * looked at, because a chunk that was never used has no memory, and reading it would allocate
 * memory.
 */
void pb_drain_look(struct pb_drain *d)
{
	uint64_t start = d->geometry.chunks_offset, end = d->geometry.size;

	while (d->high < d->geometry.nr_chunks) {
		off_t at = lseek(d->ring_fd, (off_t)(start + (uint64_t)d->high * PB_CHUNK_SIZE),
				 SEEK_DATA);

		if (at < 0 || (uint64_t)at >= end)
			return;
		/* continue to the end of this run of data */
		off_t hole = lseek(d->ring_fd, at, SEEK_HOLE);
		uint64_t to = hole > at ? (uint64_t)hole : (uint64_t)at + 1;

		to = ((to < end ? to : end) - start + PB_CHUNK_SIZE - 1) / PB_CHUNK_SIZE;
		d->high = to > d->geometry.nr_chunks ? d->geometry.nr_chunks : (uint32_t)to;
	}
}

/* Handles one chunk whose bit in the map of taken chunks is set. */
static void round_chunk(struct pb_drain *d, uint32_t i, bool full, struct pb_drain_round *r)
{
	struct pb_chunk *c = pb_drain_chunk(d, i);
	uint32_t state = pb_drain_state(c);

	if (state == PB_CHUNK_OPEN || state == PB_CHUNK_HELD || state == PB_CHUNK_TAKEN) {
		r->held++;
	} else if (state == PB_CHUNK_FULL && full && pb_drain_take(c, PB_CHUNK_FULL)) {
		batch_add(d, i, PB_CHUNK_FULL, PB_CHUNK_FREE);
		r->taken++;
	} else if (state == PB_CHUNK_FREE && pb_drain_take(c, PB_CHUNK_FREE)) {
		/* an engine set the chunk's bit, but was stopped before it took the chunk, so clear
		 * the bit */
		pb_drain_release(d, i, PB_CHUNK_FREE);
	}
}

/* Makes one round over the chunks that aren't free. */
static unsigned round_all(struct pb_drain *d, bool full)
{
	struct pb_drain_round r = { 0 };

	pb_drain_look(d);
	for (uint32_t w = 0; w < pb_ring_taken_words(d->high); w++)
		for (uint64_t bits = __atomic_load_n(&pb_drain_taken(d)[w], __ATOMIC_ACQUIRE); bits;
		     bits &= bits - 1) {
			uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(bits);

			if (i < d->high)
				round_chunk(d, i, full, &r);
		}
	batch_flush(d, PB_CHUNK_FREE);
	pb_drain_supply(d, &r);
	return r.taken;
}

unsigned pb_drain_full(struct pb_drain *d)
{
	unsigned taken = round_all(d, true);

	d->passes++;
	return taken;
}

void pb_drain_count(struct pb_drain *d)
{
	round_all(d, false);
}

/* --- chunks of dead threads --------------------------------------------- */

/* Takes the chunk only if its state and its serial are as expected. One atomic instruction compares
 * both. If another thread has got the chunk since the reaper looked, the chunk isn't taken. */
static bool take_from(struct pb_chunk *c, uint32_t state, uint32_t serial)
{
	uint64_t from = (uint64_t)serial << 32 | state,
		to = (uint64_t)serial << 32 | PB_CHUNK_READING;

	return __atomic_compare_exchange_n((uint64_t *)c, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

void pb_drain_take_from(struct pb_drain *d, uint32_t i, uint32_t serial)
{
	struct pb_chunk *c = pb_drain_chunk(d, i);
	uint32_t state = pb_drain_state(c);

	if ((state != PB_CHUNK_OPEN && state != PB_CHUNK_HELD && state != PB_CHUNK_TAKEN) ||
	    !take_from(c, state, serial))
		return;
	if (state == PB_CHUNK_TAKEN) {
		pb_drain_release(d, i, PB_CHUNK_FREE);
	} else if (d->geometry.mode != PB_RING_OVERWRITE) {
		batch_add(d, i, state, PB_CHUNK_FREE);
	} else if (state == PB_CHUNK_OPEN && holds_nothing(c)) {
		pb_drain_release(d, i, PB_CHUNK_FREE);
	} else {
		c->used = used_of_data(c);
		pb_drain_release(d, i, PB_CHUNK_FULL);
	}
}

void pb_drain_flush(struct pb_drain *d)
{
	batch_flush(d, PB_CHUNK_FREE);
}

/* --- the end ------------------------------------------------------------ */

/* Takes all chunks with records and never frees them. Adds them to `list`, which has room for
 * 2 * high chunks, or to the batch if `list` is NULL. Returns the number of chunks in `list`. */
static uint32_t take_rest(struct pb_drain *d, struct pb_drain_taken *list)
{
	static const uint32_t states[] = { PB_CHUNK_FULL, PB_CHUNK_HELD, PB_CHUNK_OPEN };
	uint32_t nr = 0;

	/* go over all chunks twice, because an OPEN chunk may become FULL or HELD before it is
	 * taken */
	for (uint32_t n = 0; n < 2 * d->high; n++) {
		uint32_t i = n % d->high;
		struct pb_chunk *c = pb_drain_chunk(d, i);

		for (unsigned k = 0; k < pb_array_size(states); k++) {
			if (pb_drain_state(c) != states[k] || !pb_drain_take(c, states[k]))
				continue;
			if (list)
				list[nr++] = (struct pb_drain_taken){ i, states[k] };
			else
				batch_add(d, i, states[k], PB_CHUNK_READING);
			break;
		}
	}
	return nr;
}

/* Adds all chunks to the batch, the newest first. So the chunks that don't fit are the oldest. */
static void take_overwritten(struct pb_drain *d)
{
	struct pb_drain_taken *list = calloc(2ul * d->high + 1, sizeof(*list));
	uint32_t nr = take_rest(d, list);

	if (list)
		pb_drain_newest_first(d, list, nr);
	for (uint32_t i = 0; i < nr; i++)
		batch_add(d, list[i].index, list[i].state, PB_CHUNK_READING);
	free(list);
}

/* Copies the start times of the threads that have chunks from the ring's table, which is untrusted.
 * The rest of the table isn't read, because the read would allocate memory. */
static void note_births(struct pb_drain *d)
{
	const struct pb_ring_thread *t =
		(const void *)((char *)d->ring + d->geometry.threads_offset);

	for (uint32_t i = 0; i < d->nr_lasts; i++)
		d->lasts[i].born = __atomic_load_n(&t[i].serial, __ATOMIC_ACQUIRE) == i + 1 ?
				   t[i].start : 0;
}

void pb_drain_rest(struct pb_drain *d)
{
	bool overwrite = d->geometry.mode == PB_RING_OVERWRITE;

	/* Begin no further round when d->high chunks have been taken. Without a limit, a thread
	 * that continues to write could keep this loop running forever. */
	pb_drain_look(d);
	for (uint32_t left = overwrite ? 0 : d->high; left;) {
		unsigned n = pb_drain_full(d);

		left = n > BATCH && n < left ? left - n : 0;
	}
	pb_drain_look(d);
	if (overwrite)
		take_overwritten(d);
	else
		take_rest(d, NULL);
	batch_flush(d, PB_CHUNK_READING);
	note_births(d);
	pb_counts_finish(&d->counts, d->lasts, d->nr_lasts, d->datadir->chunks_fd);
}

int pb_drain_chunks_init(struct pb_drain *d)
{
	d->batch = calloc(1, sizeof(*d->batch));
	d->discarded = calloc(d->geometry.nr_threads, sizeof(*d->discarded));
	d->lasts = calloc(d->geometry.nr_threads, sizeof(*d->lasts));
	d->heads = d->followed ? calloc(1, sizeof(*d->heads)) : NULL;
	if (!d->batch || !d->discarded || !d->lasts || (d->followed && !d->heads))
		return -ENOMEM;
	d->nr_lasts = 0;
	d->bytes = d->datadir->chunks_size;
	d->most_usable = d->geometry.nr_buffer;
	return 0;
}

void pb_drain_chunks_fini(struct pb_drain *d)
{
	free(d->batch);
	free(d->lasts);
	free(d->heads);
	d->heads = NULL;
	d->batch = NULL;
	d->lasts = NULL;
}
