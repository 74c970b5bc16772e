/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Manages the elements of a hash that are in no bucket's list. Allocates and frees elements, and
 * frees the elements that dead processes have left behind. */
#include "bpf/map/map_hash.h"

/* ---- stacks of free elements (only hints: a scan also finds free elements) ------- */

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

/* Takes two neighbouring elements that were never used. Returns the first, and puts the second on
 * the shard's stack: neighbours stay in one shard, because processors fetch cache lines in
 * pairs. */
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

/* ---- dead processes ---------------------------------------------------------- */

struct lives {
	const struct pb_bpf_map *m;
	uint32_t asked[PB_BPF_MAX_OWNERS / 32], dead[PB_BPF_MAX_OWNERS / 32];
};

/* Returns whether the process with this number has died. Asks the kernel only once for each number.
 * Until end_lives(), no other process gets the number of a dead process. If `alive` is NULL, this
 * process can't ask the kernel. Then it only knows that the previous owner of its own number has
 * died. */
static bool died(struct lives *l, uint32_t owner)
{
	uint32_t bit = 1u << owner % 32, i = owner / 32;

	if (!owner || owner >= PB_BPF_MAX_OWNERS)
		return false;
	if (l->m->alive && !(l->asked[i] & bit)) {
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

/* ---- announced changes of values (map_hash.h) ------------------------------------- */

/* Returns the element's own word for announcements, which is `small`. NULL: the map's values are so
 * small that `small` holds the element's value. */
static uint64_t *own_word(const struct pb_bpf_map *m, struct elem *e)
{
	return is_percpu(m->attr.type) || m->attr.value_size > SMALL ? &e->small : NULL;
}

static uint64_t announcement(const struct pb_bpf_map *m, uint32_t link,
			     const struct pb_bpf_run *run)
{
	return (uint64_t)pb_bpf_taken_by(m, run ? run->thread : 0) << 32 | link;
}

/* The cmpxchg is a full barrier on x86. So when the caller next reads the element's `next`, the
 * announcement is already visible to other threads. */
static bool announce(struct pb_bpf_map *m, uint32_t link, uint64_t *word, struct pb_bpf_run *run)
{
	uint64_t free = 0, mine = announcement(m, link, run);

	if (!word || pb_load(word))
		return false;
	pb_bpf_takes(m, word, mine, run);
	if (pb_replace(word, &free, mine))
		return true;
	pb_bpf_gives(word, run);
	return false;
}

uint64_t *pb_bpf_hash_begin_change(struct pb_bpf_map *m, uint32_t link, struct pb_bpf_run *run)
{
	uint64_t *words = hash_top(m)->changing, *word = own_word(m, elem(m, link));

	do {
		if (announce(m, link, word, run))
			return word;
		for (uint32_t i = 0; i < CHANGING; i++)
			if (announce(m, link, &words[(link + i) % CHANGING], run))
				return &words[(link + i) % CHANGING];
	} while (pb_bpf_repair_after_deaths(m));
	return NULL;
}

/* Frees the word only if it still has this announcement. If a repair has mistaken this process for
 * dead, another thread may use the word by now. */
void pb_bpf_hash_end_change(struct pb_bpf_map *m, uint32_t link, uint64_t *word,
			    struct pb_bpf_run *run)
{
	uint64_t mine = announcement(m, link, run);

	if (!word)
		return;
	pb_replace(word, &mine, 0);
	pb_bpf_gives(word, run);
}

/* A lock's word has only 32 bits. In an announcement, the upper 32 bits aren't 0. */
bool pb_bpf_hash_abandon(struct pb_bpf_map *m, void *what, uint64_t word)
{
	if (!(word >> 32))
		return false;
	pb_replace(what, &word, 0);
	return true;
}

/* The caller owns the element, and the element already has a new tag. The cmpxchg by which the
 * caller took the element is a full barrier on x86. So if this function doesn't see a thread's
 * announcement, that thread will see the new tag, and will not change the value. */
static bool is_announced(const struct pb_bpf_map *m, uint32_t link)
{
	const uint64_t *own = own_word(m, elem(m, link));

	if (own && pb_load(own))
		return true;
	for (uint32_t i = 0; i < CHANGING; i++)
		if (LINK(pb_load(&hash_top(m)->changing[i])) == link)
			return true;
	return false;
}

static void forget_change(struct pb_bpf_map *m, struct lives *l, uint64_t *word)
{
	uint64_t was = word ? pb_load(word) : 0;

	if (was && died(l, (uint32_t)(was >> (32 + PB_BPF_THREAD_BITS))))
		pb_replace(word, &was, 0);
}

static void forget_changes(struct pb_bpf_map *m, struct lives *l)
{
	if (!announces_changes(m))
		return;
	for (uint32_t link = 1; link <= m->nr_elems; link++)
		forget_change(m, l, own_word(m, elem(m, link)));
	for (uint32_t i = 0; i < CHANGING; i++)
		forget_change(m, l, &hash_top(m)->changing[i]);
}

/* If a change of the element that was taken is announced, takes another one. At the end, puts the
 * elements with announced changes on the stack of another shard, so that the next call doesn't find
 * them again. */
uint32_t pb_bpf_hash_take_elem(struct pb_bpf_map *m, uint32_t shard)
{
	uint32_t aside[CHANGING], nr = 0, link;

	while ((link = take_any(m, shard))) {
		elem(m, link)->room = 0;
		if (!announces_changes(m) || !is_announced(m, link))
			break;
		aside[nr++] = link;
		if (nr == CHANGING) {
			link = 0;
			break;
		}
	}
	while (nr--) {
		uint64_t tag = pb_load(&elem(m, aside[nr])->next) & TAGS;

		pb_bpf_hash_give_elem(m, aside[nr], owned_by(m, tag), (shard + 1) % SHARDS);
	}
	if (link)
		__atomic_store_n(&elem(m, link)->owner, (uint16_t)m->owner, __ATOMIC_RELAXED);
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

/* ---- elements and room of dead processes ------------------------------------------- */

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
		 * If that thread still lives, only one of two cmpxchgs succeeds: the one by which
		 * that thread would own the element, or the one in own() below. */
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

/*
 * Counts the elements that hold room for a key, or may hold it. These are the elements in lists,
 * deleted elements that aren't free yet, and new elements that aren't in a list yet. *sum: a
 * checksum of the `next` words of all elements. *quiet: set if each element is free, or is in a
 * list and not deleted.
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
 * Counts the room that elements hold, and computes the free room from this count. This is necessary
 * because the free room becomes wrong if processes die while they hold room. A count is valid if a
 * second count finds the same number, and neither the words nor the free room have changed. Then
 * the operations that are under way, if any, made no progress between the counts. Such an operation
 * counts as holding room, so the free room is never too large. The free room may be too small. In
 * this case it is counted again when it runs out.
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

static void repair(struct pb_bpf_map *m, struct lives *l)
{
	uint32_t found = 0;

	for (uint32_t link = 1; link <= m->nr_elems; link++)
		found += repair_elem(m, l, link);
	forget_changes(m, l);
	if (found)
		__atomic_fetch_add(&hash_top(m)->deaths, found, __ATOMIC_RELAXED);
	recount(m);
}

void pb_bpf_hash_repair(struct pb_bpf_map *m, uint32_t dead)
{
	struct lives l = { .m = m };

	dead %= PB_BPF_MAX_OWNERS;
	l.asked[dead / 32] |= 1u << dead % 32;
	l.dead[dead / 32] |= 1u << dead % 32;
	repair(m, &l);
	end_lives(&l);
}

/* The dead processes' numbers stay claimed until the repair is over, so that no new process gets
 * one of these numbers during the repair. */
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

			any |= owner != m->owner && died(&l, owner);
		}
	if (any)
		repair(m, &l);
	for (uint32_t w = 0; w < PB_BPF_MAX_OWNERS / 32; w++)
		__atomic_fetch_and(&m->head->owners[w], ~l.dead[w], __ATOMIC_RELAXED);
	end_lives(&l);
	return any;
}
