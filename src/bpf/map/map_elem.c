/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Manages the elements of a hash that are in no list. Allocates and frees elements, and finds the
 * elements that dead processes have left behind. */
#include "bpf/map/map_hash.h"

/* ---- stacks of free elements (the stacks are only hints) ----------------------- */

static uint32_t pop(struct pb_bpf_map *m, uint64_t *stack)
{
	uint64_t head = pb_load(stack);

	while (is_elem(m, LINK(head))) {
		uint32_t link = LINK(head);
		struct elem *e = elem(m, link);
		uint64_t word = pb_load(&e->next);

		if (STATE(word) != FREE || LINK(word) & END) {
			/* the element isn't free: empty the stack; a scan will find the free
			 * elements that were below it */
			if (pb_load(stack) == head)
				pb_replace(stack, &head, (head & TAGS) + TAG_ONE);
			else
				head = pb_load(stack);
			continue;
		}
		if (!pb_replace(stack, &head, (head & TAGS) + TAG_ONE + LINK(word)))
			continue;
		if (pb_replace(&e->next, &word, owned_by(m, (word & TAGS) + TAG_ONE)))
			return link;
		head = pb_load(stack);
	}
	return 0;
}

void pb_bpf_hash_give_elem(struct pb_bpf_map *m, uint32_t link, uint64_t word, uint32_t shard)
{
	uint64_t *stack = &hash_top(m)->shard[shard].head, head = pb_load(stack);
	struct elem *e = elem(m, link);

	do {
		uint64_t free = (word & TAGS) | FREE | (LINK(head) & ~END);

		if (!pb_replace(&e->next, &word, free))
			return;		/* a scan or a repair has taken the element */
		word = free;
	} while (!pb_replace(stack, &head, (head & TAGS) + TAG_ONE + link));
}

/* ---- searches ------------------------------------------------------------------ */

static bool own(struct pb_bpf_map *m, struct elem *e, uint64_t word)
{
	return pb_replace(&e->next, &word, owned_by(m, (word & TAGS) + TAG_ONE));
}

/* Searches all elements for a free element, which need not be in a stack. */
static uint32_t scan(struct pb_bpf_map *m)
{
	struct hash_top *t = hash_top(m);
	uint32_t from = __atomic_load_n(&t->scan, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < m->nr_elems; i++) {
		uint32_t link = (uint32_t)(((uint64_t)from + i) % m->nr_elems) + 1;
		uint64_t word = pb_load(&elem(m, link)->next);

		if (!(!word || (STATE(word) == FREE && !(LINK(word) & END))) ||
		    !own(m, elem(m, link), word))
			continue;
		__atomic_store_n(&t->scan, link, __ATOMIC_RELAXED);
		return link;
	}
	return 0;
}

/* Takes elements that were never used, two at a time. Two neighbours stay in one shard, because
 * processors fetch cache lines in pairs. */
static uint32_t take_new(struct pb_bpf_map *m, uint32_t shard)
{
	struct hash_top *t = hash_top(m);
	uint32_t fresh = __atomic_load_n(&t->fresh, __ATOMIC_RELAXED);

	while (fresh < m->nr_elems) {
		uint32_t first = fresh + 1, nr = first < m->nr_elems ? 2 : 1;

		if (!pb_replace32(&t->fresh, &fresh, fresh + nr))
			continue;
		if (nr > 1 && own(m, elem(m, first + 1), 0))
			pb_bpf_hash_give_elem(m, first + 1, owned_by(m, TAG_ONE), shard);
		if (own(m, elem(m, first), 0))
			return first;
	}
	return 0;
}

static uint32_t take_any(struct pb_bpf_map *m, uint32_t shard)
{
	struct hash_top *t = hash_top(m);
	uint32_t link = pop(m, &t->shard[shard].head);

	if (!link)
		link = take_new(m, shard);
	for (uint32_t i = 1; !link && i < SHARDS; i++)
		link = pop(m, &t->shard[(shard + i) % SHARDS].head);
	if (!link)
		link = scan(m);
	if (!link && m->alive) {
		pb_bpf_hash_repair(m, 0);
		link = scan(m);
	}
	return link;
}

/* ---- elements whose values are being changed in place ----------------------------- */

uint64_t *pb_bpf_hash_begin_change(struct pb_bpf_map *m, uint32_t link)
{
	uint64_t *words = hash_top(m)->changing, free;

	for (uint32_t i = 0; i < CHANGING; i++) {
		free = 0;
		/* the cmpxchg is a full barrier: the caller's next read of the element's word comes
		 * after it */
		if (!pb_load(&words[i]) &&
		    pb_replace(&words[i], &free, (uint64_t)m->owner << 32 | link))
			return &words[i];
	}
	return NULL;
}

void pb_bpf_hash_end_change(uint64_t *word)
{
	if (word)
		__atomic_store_n(word, 0, __ATOMIC_RELEASE);
}

/* The caller owns the element. The cmpxchg by which it took the element is a full barrier. So a
 * thread whose word this function doesn't see will find that the element is deleted. */
static bool is_being_changed(const struct pb_bpf_map *m, uint32_t link)
{
	for (uint32_t i = 0; i < CHANGING; i++)
		if (LINK(pb_load(&hash_top(m)->changing[i])) == link)
			return true;
	return false;
}

uint32_t pb_bpf_hash_take_elem(struct pb_bpf_map *m, uint32_t shard)
{
	uint32_t aside[CHANGING], nr = 0, link = take_any(m, shard);

	if (is_changed_in_place(m)) {
		while (link && nr < CHANGING && is_being_changed(m, link)) {
			aside[nr++] = link;
			link = take_any(m, shard);
		}
		while (nr--)
			pb_bpf_hash_give_elem(m, aside[nr], pb_load(&elem(m, aside[nr])->next),
					      shard);
	}
	if (link) {
		elem(m, link)->room = 0;
		__atomic_store_n(&elem(m, link)->owner, (uint16_t)m->owner, __ATOMIC_RELAXED);
	}
	return link;
}

/* ---- room for keys --------------------------------------------------------------- */

bool pb_bpf_hash_take_room(struct pb_bpf_map *m, uint32_t shard)
{
	struct hash_shard *shards = hash_top(m)->shard;

	for (uint32_t i = 0; i < SHARDS; i++) {
		uint32_t *from = &shards[(shard + i) % SHARDS].room,
			room = __atomic_load_n(from, __ATOMIC_RELAXED);

		while (room) {
			/* take half of another shard's room, so that this shard runs out less
			 * often */
			uint32_t some = i ? (room + 1) / 2 : 1;

			if (!pb_replace32(from, &room, room - some))
				continue;
			if (some > 1)
				__atomic_fetch_add(&shards[shard].room, some - 1, __ATOMIC_RELAXED);
			return true;
		}
	}
	return false;
}

void pb_bpf_hash_give_room(struct pb_bpf_map *m, uint32_t shard)
{
	__atomic_fetch_add(&hash_top(m)->shard[shard].room, 1, __ATOMIC_RELAXED);
}

static uint32_t all_room(const struct pb_bpf_map *m)
{
	uint32_t room = 0;

	for (uint32_t i = 0; i < SHARDS; i++)
		room += pb_load32(&hash_top(m)->shard[i].room);
	return room;
}

uint32_t pb_bpf_hash_keys(const struct pb_bpf_map *m)
{
	return m->attr.max_entries - all_room(m);
}

/* ---- what dead processes have left behind ----------------------------------------- */

struct lives {
	const struct pb_bpf_map *m;
	uint32_t asked[PB_BPF_MAX_OWNERS / 32], dead[PB_BPF_MAX_OWNERS / 32];
};

/* Returns whether the process with this number has died. Asks only once for each number. Until
 * end_lives(), no other process gets the number of a dead process. */
static bool died(struct lives *l, uint32_t owner)
{
	uint32_t bit = 1u << owner % 32, i = owner / 32;

	if (!owner || owner >= PB_BPF_MAX_OWNERS || !l->m->alive)
		return false;
	if (!(l->asked[i] & bit)) {
		l->asked[i] |= bit;
		if (l->m->claim ? l->m->claim(l->m, owner) : !l->m->alive(l->m, owner))
			l->dead[i] |= bit;
	}
	return l->dead[i] & bit;
}

static void end_lives(struct lives *l)
{
	for (uint32_t i = 0; l->m->unclaim && i < PB_BPF_MAX_OWNERS / 32; i++)
		for (uint32_t left = l->dead[i]; left; left &= left - 1)
			l->m->unclaim(l->m, i * 32 + (uint32_t)__builtin_ctz(left));
}

/* Frees the element if no list and no living process has it. Returns whether the element was
 * freed. */
static bool repair_elem(struct pb_bpf_map *m, struct lives *l, uint32_t link)
{
	struct elem *e = elem(m, link);
	uint64_t word = pb_load(&e->next);
	uint32_t bucket = e->hash & m->mask;

	switch (STATE(word)) {
	case FREE:
		if (!(LINK(word) & END) || !died(l, LINK(word) & ~END))
			return false;
		break;
	case MARK:
		/* If the element is in no list, a thread has unlinked it, but doesn't own it yet.
		 * If that thread still lives, its cmpxchg to own the element will fail. */
		if (!pb_bpf_hash_sweep(m, bucket, 0) || pb_load(&e->next) != word ||
		    pb_bpf_hash_in_list(m, bucket, link))
			return false;
		break;
	case 0:
		if (!word)
			return false;
		if (!died(l, e->owner) || pb_bpf_hash_in_list(m, bucket, link) ||
		    pb_load(&e->next) != word)
			return false;
		break;
	default:
		return false;
	}
	if (!own(m, e, word))
		return false;
	pb_bpf_hash_give_elem(m, link, owned_by(m, (word & TAGS) + TAG_ONE), 0);
	return true;
}

bool pb_bpf_repair_after_deaths(struct pb_bpf_map *m)
{
	uint64_t now = pb_cpu_counter(), asked = __atomic_load_n(&m->asked, __ATOMIC_RELAXED);
	struct lives l = { .m = m };
	bool any = pb_load32(&hash_top(m)->doubt);

	/* a full map may refuse keys all the time, so ask only now and then */
	if (!m->alive || now - asked < 10000000 || !pb_replace(&m->asked, &asked, now))
		return false;
	for (uint32_t w = 0; w < PB_BPF_MAX_OWNERS / 32; w++)
		for (uint32_t left = pb_load32(&m->head->owners[w]); left; left &= left - 1) {
			uint32_t owner = w * 32 + (uint32_t)__builtin_ctz(left);

			if (owner == m->owner || !died(&l, owner))
				continue;
			__atomic_fetch_and(&m->head->owners[w], ~(1u << owner % 32),
					   __ATOMIC_RELAXED);
			any = true;
		}
	end_lives(&l);
	if (any)
		pb_bpf_hash_repair(m, 0);
	return any;
}

/*
 * Counts the elements that hold room, or may hold room. These are the elements in lists, deleted
 * elements that aren't free yet, and new elements that aren't in a list yet. *sum: a checksum of
 * the `next` words of all elements. *quiet: set if each element is free, or is in a list and not
 * deleted.
 */
static uint32_t count_held(struct pb_bpf_map *m, uint64_t *sum, bool *quiet)
{
	uint32_t held = 0;

	*sum = 0;
	*quiet = true;
	for (uint32_t link = 1; link <= m->nr_elems; link++) {
		struct elem *e = elem(m, link);
		uint64_t word = pb_load(&e->next);

		*sum = *sum * 31 + word;
		if (!word || (STATE(word) == FREE && !(LINK(word) & END)))
			continue;
		if (STATE(word) == MARK) {
			held += !(word & KEPT);
			*quiet = false;
		} else if (!STATE(word) && pb_bpf_hash_in_list(m, e->hash & m->mask, link) == 1) {
			held++;
		} else {
			held += e->room;
			*quiet = false;
		}
	}
	return held;
}

/* Changes the total room of all shards from `is` to `room`. */
static void set_room(struct pb_bpf_map *m, uint32_t room, uint32_t is)
{
	struct hash_shard *shards = hash_top(m)->shard;

	if (is < room)
		__atomic_fetch_add(&shards[0].room, room - is, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < SHARDS && is > room; i++) {
		uint32_t there = pb_load32(&shards[i].room), less = there < is - room ? there :
				 is - room;

		if (pb_replace32(&shards[i].room, &there, there - less))
			is -= less;
	}
}

/*
 * Counts the held room anew, and from that computes the free room. The free room can be wrong only
 * if processes died while they held room. A count is valid if a second count finds the same number,
 * and neither the words nor the free room have changed. Then no operation is under way, or the
 * operations under way make no progress. An operation without progress counts as holding room, so
 * the free room is never too large. If it is too small, it is counted again when it runs out.
 */
static void recount(struct pb_bpf_map *m)
{
	for (int tries = 0; tries < 8; tries++) {
		uint64_t sums[2];
		bool quiet;
		uint32_t room = all_room(m), held = count_held(m, &sums[0], &quiet);

		if (count_held(m, &sums[1], &quiet) != held || sums[0] != sums[1] ||
		    all_room(m) != room)
			continue;
		set_room(m, held < m->attr.max_entries ? m->attr.max_entries - held : 0, room);
		__atomic_store_n(&hash_top(m)->doubt, !quiet, __ATOMIC_RELAXED);
		return;
	}
	__atomic_store_n(&hash_top(m)->doubt, 1, __ATOMIC_RELAXED);
}

void pb_bpf_hash_repair(struct pb_bpf_map *m, uint32_t dead)
{
	struct lives l = { .m = m };
	uint32_t found = 0;

	dead %= PB_BPF_MAX_OWNERS;
	l.asked[dead / 32] |= 1u << dead % 32;
	l.dead[dead / 32] |= 1u << dead % 32;

	for (uint32_t link = 1; link <= m->nr_elems; link++)
		found += repair_elem(m, &l, link);
	for (uint32_t i = 0; i < CHANGING; i++) {
		uint64_t word = pb_load(&hash_top(m)->changing[i]);

		if (word && died(&l, (uint32_t)(word >> 32)))
			pb_replace(&hash_top(m)->changing[i], &word, 0);
	}
	end_lives(&l);
	if (found)
		__atomic_fetch_add(&hash_top(m)->deaths, found, __ATOMIC_RELAXED);
	recount(m);
}
