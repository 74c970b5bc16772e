/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ring of the writer's tests. Each record has a number, which is its site. By this number, a
 * test finds out whether a record that was written completely is in the chunks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "ring/change.h"
#include "writer_ring.h"

#define TIME		1000

uint8_t *ring;
struct pb_writer w;
uint32_t next_record;
uint8_t done[MAX_RECORDS];
long at;
bool may_close;
static uint8_t seen[MAX_RECORDS];

/* Replaces the section of the hit path, which isn't linked into this test. forked.c reads the
 * section. */
static const uint32_t no_words[3] __attribute__((section("pb_forked_words"), used));

static uint64_t no_time(void)
{
	return TIME;
}

static size_t one_open_call(struct pb_writer *writer, struct pb_owner o, uint64_t *data, size_t max,
			    uint32_t *depth, const void *ending)
{
	pb_own_store(o, &data[0], pb_ext_record(OPEN, 1, 0));
	pb_own_store(o, &data[1], TIME);
	*depth = 1;
	return 2;
}

void make_ring(void)
{
	/* the ring is shared with children */
	ring = mmap(NULL, SIZE + PB_CHUNK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	assert_true(ring != MAP_FAILED);
	ring += -(uint64_t)ring % PB_CHUNK_SIZE;
	pb_ring_clock = no_time;
	pb_ring_open_calls = one_open_call;
	pb_ring_unseen = 0;
}

struct pb_chunk *chunk(int i)
{
	return (void *)(ring + CHUNKS_AT + (size_t)i * PB_CHUNK_SIZE);
}

__attribute__((noinline)) void put_as(uint32_t n, enum kind kind)
{
	uint64_t site = (uint64_t)n << PB_SITE_SHIFT;
	bool ok = false;

	assert_true(n < MAX_RECORDS);
	w.slot = (uint64_t)__builtin_frame_address(0);
	switch (kind) {
	case SHORT:
		ok = pb_writer_put(&w, PB_TAG_LEAF | site, TIME, PB_LEAF_BITS, NULL, 0);
		break;
	case ENTRY:
		ok = pb_writer_put_entry(&w, PB_TAG_ENTRY | site, TIME);
		break;
	case LONG:
		ok = pb_writer_put_long(&w, n, TIME - 7, TIME);
		break;
	case ESCAPE:
		ok = pb_writer_put(&w, PB_TAG_LEAF | site, w.last + (1ull << 40), PB_LEAF_BITS,
				   NULL, 0);
		break;
	}
	done[n] = ok;
}

void put(enum kind kind)
{
	put_as(__atomic_fetch_add(&next_record, 1, __ATOMIC_RELAXED), kind);
}

void fill_chunk(void)
{
	uint64_t at = pb_chunk_of(w.pos);

	while (pb_chunk_of(w.pos) == at && (w.pos & (PB_CHUNK_SIZE - 1)) < PB_CHUNK_LIMIT - 8)
		put(SHORT);
}

static void one_record(uint32_t site)
{
	if (site >= next_record)
		fail_msg("no such record: %u of %u (step %ld)", site, next_record, at);
	if (seen[site]++)
		fail_msg("record %u is there twice (step %ld)", site, at);
}

static void read_chunk(struct pb_chunk *c, uint8_t *numbers)
{
	const uint64_t *data = (const uint64_t *)(c + 1);
	uint32_t end = (PB_CHUNK_SIZE - PB_CHUNK_HEADER) / 8;

	while (end && !data[end - 1])
		end--;
	if (c->state == PB_CHUNK_OPEN && end * 8 <= c->used)
		return;
	if (c->state == PB_CHUNK_FULL && PB_CHUNK_HEADER + end * 8 < PB_CHUNK_LIMIT && !may_close)
		fail_msg("words are missing at the end of chunk %lu, and no PAD shows it "
			 "(step %ld)", c->seq, at);
	if (numbers[c->seq]++)
		fail_msg("two chunks have the number %lu (step %ld)", c->seq, at);
	for (uint32_t i = 0; i < end;) {
		uint64_t word = data[i];
		unsigned type = word >> PB_EXT_TYPE_SHIFT & 0x3f;
		uint32_t len = word & PB_TAG_MASK ? 1 : word >> PB_EXT_LEN_SHIFT & 0xff;

		if (word & PB_TAG_MASK)
			one_record(word >> PB_SITE_SHIFT & PB_SITE_MASK);
		else if (word && type == PB_EXT_LONG)
			one_record(word >> PB_EXT_SITE_SHIFT & PB_SITE_MASK);
		i += len ? len : 1;
	}
}

void drain(uint8_t *numbers)
{
	for (int i = 0; i < CHUNKS; i++) {
		if (chunk(i)->state == PB_CHUNK_FULL) {
			read_chunk(chunk(i), numbers);
			chunk(i)->state = PB_CHUNK_FREE;
		}
		/* the writer may have given the chunk back */
		if (chunk(i)->state == PB_CHUNK_FREE)
			pb_ring_map.taken[0] &= ~(1ul << i);
	}
}

int check_all(uint8_t *numbers)
{
	int held = 0;

	drain(numbers);
	for (int i = 0; i < CHUNKS; i++) {
		if (chunk(i)->state == PB_CHUNK_OPEN || chunk(i)->state == PB_CHUNK_HELD)
			read_chunk(chunk(i), numbers);
		held += chunk(i)->state != PB_CHUNK_FREE;
	}
	for (uint32_t i = 0; i < next_record; i++)
		if (done[i] && !seen[i])
			fail_msg("record %u of %u is missing (step %ld)", i, next_record, at);
	return held;
}

void begin(bool zeroing)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0);

	memset(ring + CHUNKS_AT, zeroing ? 0xa5 : 0, (size_t)CHUNKS * PB_CHUNK_SIZE);
	for (int i = 0; i < CHUNKS; i++)
		*chunk(i) = (struct pb_chunk){ .uses = zeroing };
	*(struct pb_ring *)ring = (struct pb_ring){
		.magic = PB_RING_MAGIC, .version = PB_RING_VERSION, .usable = CHUNKS,
	};
	assert_int_equal(pb_ring_attach(ring, SIZE, 8, CHUNKS, 4096, CHUNKS_AT,
					PB_RING_DISCARD), 0);
	pb_ring_map.taken[0] = 0;
	pb_writer_init(&w, 1, 1, 1);
	w.own_lo = here - (4 << 20);
	w.own_hi = here + 4096;
	memset(done, 0, next_record);
	memset(seen, 0, next_record);
	next_record = 1;
}
