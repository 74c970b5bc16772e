/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * BPF_MAP_TYPE_RINGBUF: many producers, in several processes, and one consumer. map_ringbuf.h
 * describes the layout, which is the kernel's. The layout requires that a header is BUSY before the
 * producers' position passes the header. The kernel takes a lock to meet this rule. In this file no
 * producer waits for another producer: if a producer finds a half-done reservation of another
 * producer, even of a dead process, it finishes that reservation itself.
 *
 * A reservation has three steps:
 *
 *   1. claim: one cmpxchg of 16 bytes writes {position, length, owner}. Before the cmpxchg, the
 *      previous claim must be finished: the producers' position must be after the previous claim's
 *      position
 *   2. the record's header becomes BUSY if the producers' position is still the claim's position
 *   3. the producers' position moves to the end of the record
 *
 * finish() does steps 2 and 3, for the thread's own claim and for the claims of other threads. A
 * thread may do step 2 late, when the record was already submitted and its bytes are used for
 * another record. Then step 2 must have no effect. It is a cmpxchg from the word that free space
 * has at the header's place, and this word is different for each position: it has a tag and the
 * position (free_word()). So step 2 succeeds once. A new buffer has these words. The consumer
 * stores those of the next lap over each record before it moves its position.
 *
 * The consumer may be libbpf, which leaves the old records in the free space. Then finish() reads
 * the header, checks the position, and does step 2 by a cmpxchg from the header that it read. Each
 * such reservation increments a generation in the header's second word, so a late cmpxchg fails in
 * most cases: not if the place has become data with the same word. Step 3 is a cmpxchg of a
 * position that only rises.
 *
 *   header     BUSY, length │ owner, generation      reserved: owned by its producer
 *              length                                submitted: owned by the consumer
 *              DISCARD, length                       the consumer skips it
 *
 * A record's header has its owner's number. If the owner dies before it submits the record, a
 * repair discards the record. A repair runs when a producer finds the buffer full, when the
 * consumer waits for the record, or when a process gets the number of a dead process. A submission
 * writes the length with a full barrier, so that no wakeup is lost. Either the consumer sees the
 * submitted record, or the producer sees that the consumer's position is at the record, and wakes
 * the consumer. A signal handler may reserve a record between any two steps. The handler finishes
 * the interrupted claim first.
 */
#include "bpf/map/map_priv.h"
#include "bpf/map/map_ringbuf.h"

#define PAGE		4096ull
#define HEADER		8ull
#define OWNER_BITS	10
#define FREE_TAG	(0xf5eeull << 48)	/* a header's generation doesn't get so large */
#define CLAIMED		(1u << 31)	/* bit in `owner`: the claim is valid; a new block has no
					 * valid claim */
#define MAX_TRIES	100000	/* a try fails only because of another reservation, which is
				 * half-done or has just been made */

struct claim {
	uint64_t pos;
	uint32_t len, owner;
} __attribute__((aligned(16)));

struct producer {
	uint64_t pos, pad[7];
	struct claim claim;
};

static uint64_t *consumer_pos(const struct pb_bpf_map *m)
{
	return (uint64_t *)((char *)m->head + PAGE);
}

static struct producer *producer(const struct pb_bpf_map *m)
{
	return (struct producer *)((char *)m->head + 2 * PAGE);
}

static uint64_t *header_at(const struct pb_bpf_map *m, uint64_t pos)
{
	return (uint64_t *)(m->elems + (pos & m->mask & ~7ull));
}

static uint64_t ringbuf_size(const struct pb_bpf_map_spec *s, int *err)
{
	const struct pb_bpf_map_attr *a = &s->attr;

	*err = a->flags || a->key_size || a->value_size || !a->max_entries ||
	       a->max_entries % PAGE || a->max_entries & (a->max_entries - 1) ? -EINVAL : 0;
	return *err ? 0 : 3 * PAGE + a->max_entries;
}

/* Returns the word that free space has at this position. */
static uint64_t free_word(uint64_t pos)
{
	return FREE_TAG | (pos >> 3 & ((1ull << 48) - 1));
}

static void ringbuf_format(void *block)
{
	struct pb_bpf_map_head *head = block;
	uint64_t *data = (uint64_t *)((char *)block + 3 * PAGE);

	for (uint64_t pos = 0; pos < head->spec.attr.max_entries; pos += 8)
		data[pos / 8] = free_word(pos);
}

static uint64_t ringbuf_written(const struct pb_bpf_map_spec *s)
{
	return s->attr.max_entries;
}

static bool ringbuf_open(struct pb_bpf_map *m)
{
	m->elems = (char *)m->head + 3 * PAGE;
	m->mask = m->attr.max_entries - 1;
	return true;
}

/* ---- reservations ------------------------------------------------------------------ */

static bool claim_replace(struct claim *at, struct claim *old, struct claim new)
{
	uint64_t pos = old->pos, rest = (uint64_t)old->owner << 32 | old->len;

	return pb_replace16(&at->pos, &pos, &rest, new.pos, (uint64_t)new.owner << 32 | new.len);
}

static struct claim claim_load(struct claim *at)
{
	struct claim c;
	uint64_t rest;

	/* positions only rise: if the position is the same before and after the second load, len
	 * and owner belong to this position */
	do {
		c.pos = pb_load(&at->pos);
		rest = pb_load((uint64_t *)&at->len);
	} while (pb_load(&at->pos) != c.pos);
	c.len = (uint32_t)rest;
	c.owner = (uint32_t)(rest >> 32);
	return c;
}

static uint64_t room_of(uint32_t len)
{
	return pb_align_up(len + HEADER, HEADER);
}

/* Does steps 2 and 3 of a reservation. Any thread may call it. */
static void finish(struct pb_bpf_map *m, struct claim c)
{
	uint64_t *header = header_at(m, c.pos), old = pb_load(header), pos = c.pos;
	bool is_free = old == free_word(c.pos);
	uint32_t generation = is_free ? 0 : ((uint32_t)(old >> 32) >> OWNER_BITS) + 1;

	/* This check must come after the read of the header. The producers' position only rises. So
	 * if it is still the claim's position, no thread had done step 3 when `old` was read. Then
	 * `old` is the word before step 2, or the header that another thread wrote in step 2. If
	 * this function replaces the latter, only the generation changes. */
	if (!is_free && pb_load(&producer(m)->pos) != c.pos)
		return;
	pb_replace(header, &old, (uint64_t)(generation << OWNER_BITS |
					    (c.owner & ((1u << OWNER_BITS) - 1))) << 32 |
				 BPF_RINGBUF_BUSY_BIT | c.len);
	pb_replace(&producer(m)->pos, &pos, c.pos + room_of(c.len));
}

/* Called when the buffer is full. If the oldest record isn't submitted, its producer may have died,
 * so this function repairs the buffer. It doesn't do this at each call, because a repair makes
 * system calls. */
static void mend(struct pb_bpf_map *m)
{
	uint64_t now = pb_cpu_counter(), asked = __atomic_load_n(&m->asked, __ATOMIC_RELAXED);
	uint64_t *header = header_at(m, pb_load(consumer_pos(m))), word = pb_load(header);

	if (m->alive && word & BPF_RINGBUF_BUSY_BIT && now - asked >= 10000000 &&
	    pb_replace(&m->asked, &asked, now))
		m->ops->repair(m, 0);
}

void *pb_bpf_ringbuf_reserve(struct pb_bpf_map *m, uint64_t size, uint64_t flags)
{
	struct producer *p = producer(m);
	struct claim new = { .len = (uint32_t)size, .owner = m->owner | CLAIMED };

	if (flags || size > UINT32_MAX / 4 || room_of(new.len) > m->attr.max_entries)
		return NULL;
	for (int tries = 0; tries < MAX_TRIES; tries++) {
		struct claim last = claim_load(&p->claim);
		uint64_t pos = pb_load(&p->pos);

		if (last.pos == pos && last.owner & CLAIMED) {
			finish(m, last);
			continue;
		}
		if (pos + room_of(new.len) - pb_load(consumer_pos(m)) > m->mask) {
			/* the consumer may have passed an old `pos` */
			if (pb_load(&p->pos) != pos)
				continue;
			mend(m);
			return NULL;
		}
		new.pos = pos;
		if (!claim_replace(&p->claim, &last, new))
			continue;
		finish(m, new);
		return (char *)header_at(m, pos) + HEADER;
	}
	return NULL;
}

void pb_bpf_ringbuf_submit(struct pb_bpf_map *m, void *sample, uint64_t flags, bool discard)
{
	uint32_t *len = (uint32_t *)((char *)sample - HEADER);
	uint32_t new = (__atomic_load_n(len, __ATOMIC_RELAXED) & ~BPF_RINGBUF_BUSY_BIT) |
		       (discard ? BPF_RINGBUF_DISCARD_BIT : 0);

	__atomic_exchange_n(len, new, __ATOMIC_SEQ_CST);
	if (!m || !m->wake)
		return;
	if (flags & BPF_RB_FORCE_WAKEUP ||
	    (!(flags & BPF_RB_NO_WAKEUP) &&
	     (uint64_t *)len == header_at(m, pb_load(consumer_pos(m)))))
		m->wake(m);
}

uint64_t pb_bpf_ringbuf_query(struct pb_bpf_map *m, uint64_t flags)
{
	uint64_t cons = pb_load(consumer_pos(m)), prod = pb_load(&producer(m)->pos);

	switch (flags) {
	case BPF_RB_AVAIL_DATA:
		return prod - cons;
	case BPF_RB_RING_SIZE:
		return m->attr.max_entries;
	case BPF_RB_CONS_POS:
		return cons;
	case BPF_RB_PROD_POS:
		return prod;
	default:
		return 0;
	}
}

struct pb_bpf_map *pb_bpf_ringbuf_of(struct pb_bpf_map *const *maps, uint32_t nr,
				     const void *sample)
{
	for (uint32_t i = 0; i < nr; i++)
		if (maps[i]->attr.type == BPF_MAP_TYPE_RINGBUF &&
		    (uint64_t)((const char *)sample - maps[i]->elems) <=
								   maps[i]->mask + HEADER)
			return maps[i];
	return NULL;
}

/* ---- the consumer -------------------------------------------------------------------- */

/* Whether the consumer has already stored the free word of the next lap here. It has died before it
 * moved its position. */
static bool is_freed(const struct pb_bpf_map *m, uint64_t pos, uint64_t word)
{
	return word == free_word(pos + m->mask + 1);
}

/* Makes a record free space of the next lap. If the consumer dies meanwhile, the next consumer
 * skips the record: either it has its header still, or all of it is free words. */
static void set_free(struct pb_bpf_map *m, uint64_t pos, uint64_t word)
{
	uint32_t len = (uint32_t)word & ~BPF_RINGBUF_DISCARD_BIT;

	__atomic_store_n(header_at(m, pos), word | BPF_RINGBUF_DISCARD_BIT, __ATOMIC_RELEASE);
	for (uint64_t at = pos + room_of(len); at > pos; ) {
		at -= HEADER;
		__atomic_store_n(header_at(m, at), free_word(at + m->mask + 1), __ATOMIC_RELEASE);
	}
}

/* Another process may be the consumer. If it has passed *pos, moves *pos to its position and
 * returns true. Then the bytes at the old *pos may have become the data of another record. */
static bool is_passed(const struct pb_bpf_map *m, uint64_t *pos, uint64_t *walked)
{
	uint64_t ahead = pb_load(consumer_pos(m)) - *pos;

	if ((int64_t)ahead <= 0)
		return false;
	*pos += ahead;
	*walked += ahead;
	return true;
}

/* Whether the process that reserved the record with this header has died. */
static bool is_left(const struct pb_bpf_map *m, uint64_t word, uint32_t dead)
{
	uint32_t owner = (uint32_t)(word >> 32) & ((1u << OWNER_BITS) - 1);

	return word & BPF_RINGBUF_BUSY_BIT && owner &&
	       (owner == dead || (m->alive && !m->alive(m, owner)));
}

/* Discards records whose producers died. First finishes a claim that is half-done, because a dead
 * process may have made it. If a later producer finished this claim, after the repair, the record
 * would stay BUSY. `end` is read before `pos`, so that a consumer that moves on meanwhile doesn't
 * make them look further apart than the buffer's size. */
static void ringbuf_repair(struct pb_bpf_map *m, uint32_t dead)
{
	struct claim last = claim_load(&producer(m)->claim);
	uint64_t pos, end;

	if (last.owner & CLAIMED)
		finish(m, last);
	end = pb_load(&producer(m)->pos);
	pos = pb_load(consumer_pos(m));
	for (uint64_t walked = 0; walked <= m->mask && end - pos <= m->mask && pos != end; ) {
		uint64_t *header = header_at(m, pos), word = pb_load(header), room;

		if (is_passed(m, &pos, &walked))
			continue;
		room = is_freed(m, pos, word) ? HEADER :
		       room_of((uint32_t)word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT));
		if (!is_freed(m, pos, word) && is_left(m, word, dead)) {
			if (is_passed(m, &pos, &walked))
				continue;
			if (!pb_replace(header, &word, (word & ~(uint64_t)BPF_RINGBUF_BUSY_BIT) |
					BPF_RINGBUF_DISCARD_BIT)) {
				/* looks at the record again; limits the number of looks */
				walked += HEADER;
				continue;
			}
		}
		pos += room;
		walked += room;
	}
}

int64_t pb_bpf_ringbuf_consume(struct pb_bpf_map *m, pb_bpf_ringbuf_fn *fn, void *arg)
{
	uint64_t pos = pb_load(consumer_pos(m)), end = pb_load(&producer(m)->pos);
	int64_t nr = 0;

	/* no correct producer gets this far ahead */
	if (end - pos > m->attr.max_entries)
		return -EINVAL;
	while ((int64_t)(end - pos) > 0) {
		uint64_t word = pb_load(header_at(m, pos));
		uint32_t len = (uint32_t)word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		int ret = 0;

		if (is_freed(m, pos, word)) {
			pos += HEADER;
			__atomic_store_n(consumer_pos(m), pos, __ATOMIC_SEQ_CST);
			continue;
		}
		if (word & BPF_RINGBUF_BUSY_BIT) {
			ringbuf_repair(m, 0);
			if (pb_load(header_at(m, pos)) & BPF_RINGBUF_BUSY_BIT)
				break;
			continue;
		}
		if (room_of(len) > m->attr.max_entries)
			return -EINVAL;		/* no correct producer writes such a length */
		if (!(word & BPF_RINGBUF_DISCARD_BIT)) {
			ret = fn(arg, (char *)header_at(m, pos) + HEADER, len);
			nr++;
		}
		set_free(m, pos, word);
		pos += room_of(len);
		__atomic_store_n(consumer_pos(m), pos, __ATOMIC_SEQ_CST);
		if (ret < 0)
			return ret;
	}
	return nr;
}

static int no_update(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags,
		     struct pb_bpf_run *run)
{
	return -PB_BPF_ENOTSUPP;
}

static int no_remove(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	return -PB_BPF_ENOTSUPP;
}

static int no_write(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags)
{
	return -PB_BPF_ENOTSUPP;
}

static int no_next_key(struct pb_bpf_map *m, const void *key, void *next)
{
	return -PB_BPF_ENOTSUPP;
}

const struct pb_bpf_map_ops pb_bpf_ringbuf_ops = {
	.size = ringbuf_size, .format = ringbuf_format, .written = ringbuf_written,
	.open = ringbuf_open,
	.lookup = pb_bpf_no_lookup, .update = no_update, .remove = no_remove,
	.next_key = no_next_key, .each = pb_bpf_no_each, PB_BPF_NO_QUEUE, .read = pb_bpf_no_read,
	.write = no_write, .take = pb_bpf_no_take, .repair = ringbuf_repair,
};
