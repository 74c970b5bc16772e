/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gives engines three things that they need besides free chunks: the number of chunks that they may
 * use, memory for the chunks that they will use next, and a notice if the recorder dies.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "reader/drain_priv.h"

#define AHEAD		(8u << 20)	/* how many bytes of free chunks should have memory */
#define PIECE		(1u << 20)	/* how many bytes of memory one step allocates */
#define TRIM_MAX	8192		/* limit of the chunks that one trim looks at */

/* The map of taken chunks consists of words. Engines begin to search for a free chunk at the word
 * with the index free_word. So if the freed chunk's bit is in an earlier word, free_word is set to
 * that word. Engines then use this chunk again soon, which is fast because the chunk's memory is
 * probably in the processor's cache. */
void pb_drain_release(struct pb_drain *d, uint32_t i, uint32_t next_state)
{
	if (next_state == PB_CHUNK_READING)
		return;
	if (next_state == PB_CHUNK_FREE) {
		__atomic_fetch_and(&pb_drain_taken(d)[i / 64], ~(1ull << i % 64), __ATOMIC_RELAXED);
		if (i / 64 < __atomic_load_n(&d->ring->free_word, __ATOMIC_RELAXED))
			__atomic_store_n(&d->ring->free_word, i / 64, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&pb_drain_chunk(d, i)->state, next_state, __ATOMIC_RELEASE);
}

/* Sets how many chunks engines may use: nr_buffer, plus the number of chunks that threads hold. The
 * high half of the word is the older number of threads (pb_drain_serials()). */
void pb_drain_supply(struct pb_drain *d, const struct pb_drain_round *r)
{
	uint64_t usable = (uint64_t)d->geometry.nr_buffer + r->held;

	if (usable > d->geometry.nr_chunks)
		usable = d->geometry.nr_chunks;
	if (usable > d->most_usable)
		d->most_usable = (uint32_t)usable;
	usable |= (uint64_t)d->serials[1] << 32;
	if (usable != __atomic_load_n(&d->ring->usable, __ATOMIC_RELAXED))
		__atomic_store_n(&d->ring->usable, usable, __ATOMIC_RELAXED);
}

void pb_drain_serials(struct pb_drain *d)
{
	d->serials[1] = d->serials[0];
	d->serials[0] = __atomic_load_n(&d->ring->next_serial, __ATOMIC_ACQUIRE);
}

/* Returns 1 + the index of the buffer's last chunk that isn't free, or 0 if all are free. */
static uint32_t top_taken(struct pb_drain *d)
{
	uint64_t w = pb_ring_taken_words(d->geometry.nr_buffer), bits = 0;

	/* pb_drain_ahead() has given no memory to the chunks from index `ahead` on, so look only at
	 * the chunks below `ahead` */
	if (w > pb_ring_taken_words(d->ahead))
		w = pb_ring_taken_words(d->ahead);
	while (w && !bits)
		bits = __atomic_load_n(&pb_drain_taken(d)[--w], __ATOMIC_RELAXED);
	return bits ? (uint32_t)w * 64 + 64 - (uint32_t)__builtin_clzll(bits) : 0;
}

bool pb_drain_ahead(struct pb_drain *d)
{
	uint32_t nr = PIECE / PB_CHUNK_SIZE;
	uint64_t to;

	if (d->ahead >= d->geometry.nr_buffer)
		return false;
	to = (uint64_t)top_taken(d) + AHEAD / PB_CHUNK_SIZE;
	if (d->ahead + nr > to)
		return false;
	if (nr > d->geometry.nr_buffer - d->ahead)
		nr = d->geometry.nr_buffer - d->ahead;
	/* if madvise() fails, engines get each page by a page fault */
	if (madvise(pb_drain_chunk(d, d->ahead), (size_t)nr * PB_CHUNK_SIZE, MADV_POPULATE_WRITE))
		nr = d->geometry.nr_buffer - d->ahead;
	d->ahead += nr;
	return true;
}

/* Frees the memory of nr chunks, which are READING. The freed memory reads as zero, and so the
 * chunks become FREE: a chunk of zeroes is FREE and was never used. If the memory can't be freed,
 * releases the chunks. */
static void trim_run(struct pb_drain *d, uint32_t first, uint32_t nr)
{
	off_t at = (off_t)(d->geometry.chunks_offset + (uint64_t)first * PB_CHUNK_SIZE);

	if (nr && fallocate(d->ring_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at,
			    (off_t)nr * PB_CHUNK_SIZE))
		for (uint32_t i = first; i < first + nr; i++)
			pb_drain_release(d, i, PB_CHUNK_FREE);
}

/* Returns the index of the first chunk from i on that has memory, or d->high if there is none. A
 * chunk without memory must not be read, because the read would allocate memory. */
static uint32_t next_data(struct pb_drain *d, uint32_t i)
{
	uint64_t start = d->geometry.chunks_offset;
	off_t at = lseek(d->ring_fd, (off_t)(start + (uint64_t)i * PB_CHUNK_SIZE), SEEK_DATA);

	return at < 0 ? d->high : (uint32_t)(((uint64_t)at - start) / PB_CHUNK_SIZE);
}

#define NOT_KNOWN	UINT64_MAX

/* Returns the time of the last record of the oldest FULL chunk among those that engines may take
 * over. Returns 0 if they have no FULL chunk, because no chunk is older then. A chunk that begins
 * after another chunk's end isn't older than that chunk, so most chunks need not be decoded. */
static uint64_t oldest_end(struct pb_drain *d)
{
	uint32_t nr = d->most_usable < d->high ? d->most_usable : d->high;
	uint64_t oldest = 0;
	bool found = false;

	for (uint32_t i = 0; i < nr; i++) {
		struct pb_chunk *c = pb_drain_chunk(d, i);
		uint64_t end;

		if (!pb_drain_is_taken(d, i) || pb_drain_state(c) != PB_CHUNK_FULL ||
		    (found && c->start >= oldest))
			continue;
		end = pb_drain_last_time(d, i);
		oldest = found && oldest < end ? oldest : end;
		found = true;
	}
	return oldest;
}

/* Takes the chunk i, whose index is too high for engines, if it isn't needed. In overwrite mode
 * there may be FULL chunks. No engine would ever take them over. They are taken when their last
 * record is from before `limit`: they then are older than all chunks that engines take over. */
static bool take_unneeded(struct pb_drain *d, uint32_t i, uint64_t *limit)
{
	struct pb_chunk *c = pb_drain_chunk(d, i);

	if (!pb_drain_is_taken(d, i))
		return pb_drain_take(c, PB_CHUNK_FREE);
	if (d->geometry.mode != PB_RING_OVERWRITE || pb_drain_state(c) != PB_CHUNK_FULL)
		return false;
	if (*limit == NOT_KNOWN)
		*limit = oldest_end(d);
	if (c->start >= *limit || pb_drain_last_time(d, i) >= *limit ||
	    !pb_drain_take(c, PB_CHUNK_FULL))
		return false;
	__atomic_fetch_add(&d->ring->chunks_overwritten, 1, __ATOMIC_RELAXED);
	__atomic_fetch_and(&pb_drain_taken(d)[i / 64], ~(1ull << i % 64), __ATOMIC_RELAXED);
	return true;
}

void pb_drain_trim(struct pb_drain *d)
{
	uint32_t nr = 0, end = d->high, i = d->most_usable;
	uint64_t limit = NOT_KNOWN;

	for (uint32_t looks = 0; i < end && looks < TRIM_MAX; looks++) {
		uint32_t next = next_data(d, i);

		if (next == i && take_unneeded(d, i, &limit)) {
			nr++;
			i++;
			continue;
		}
		trim_run(d, i - nr, nr);
		nr = 0;
		i = next == i ? i + 1 : next;
	}
	trim_run(d, i - nr, nr);
	d->most_usable = d->geometry.nr_buffer;
}

/* Puts ring->owner into the calling thread's list of robust futexes. So when this thread dies, the
 * kernel sets the bit PB_OWNER_DIED (FUTEX_OWNER_DIED) in ring->owner. */
void pb_drain_own(struct pb_drain *d)
{
	d->robust = (struct robust_list_head){
		.list = { &d->robust_entry },
		.futex_offset = (char *)&d->ring->owner - (char *)&d->robust_entry,
	};
	d->robust_entry.next = &d->robust.list;
	if (!syscall(SYS_set_robust_list, &d->robust, sizeof(d->robust)))
		__atomic_store_n(&d->ring->owner, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

void pb_drain_disown(struct pb_drain *d)
{
	d->robust.list.next = &d->robust.list;
	__atomic_store_n(&d->ring->owner, 0, __ATOMIC_RELEASE);
}
