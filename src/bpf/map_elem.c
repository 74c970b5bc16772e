/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A hash's elements while they are in no list: taken, given back, found again. */
#include "bpf/map_hash.h"

/* ---- stacks: hints where free elements are ------------------------------------- */

static uint32_t pop(struct pb_bpf_map *m, uint64_t *stack)
{
	uint64_t head = pb_load(stack);

	while (is_elem(m, LINK(head))) {
		uint32_t link = LINK(head);
		struct elem *e = elem(m, link);
		uint64_t word = pb_load(&e->next);

		if (STATE(word) != FREE || LINK(word) & END) {
			/* not free although it is here: what lies below is found by a scan */
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

void pb_bpf_hash_give_elem(struct pb_bpf_map *m, uint32_t link, uint64_t word, uint32_t bucket)
{
	uint64_t *stack = &hash_top(m)->free[bucket % SHARDS].head, head = pb_load(stack);
	struct elem *e = elem(m, link);

	do {
		uint64_t free = (word & TAGS) | FREE | (LINK(head) & ~END);

		if (!pb_replace(&e->next, &word, free))
			return;		/* found by a scan, or by who repairs */
		word = free;
	} while (!pb_replace(stack, &head, (head & TAGS) + TAG_ONE + link));
}

/* ---- searches ------------------------------------------------------------------ */

static bool own(struct pb_bpf_map *m, struct elem *e, uint64_t word)
{
	return pb_replace(&e->next, &word, owned_by(m, (word & TAGS) + TAG_ONE));
}

/* An element that is free but in no stack. */
static uint32_t scan(struct pb_bpf_map *m)
{
	struct hash_top *t = hash_top(m);
	uint32_t from = __atomic_load_n(&t->scan, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < m->nr_elems; i++) {
		uint32_t link = (uint32_t)(((uint64_t)from + i) % m->nr_elems) + 1;
		uint64_t word = pb_load(&elem(m, link)->next);

		if (!(!word || (STATE(word) == FREE && !(LINK(word) & END))) || !own(m, elem(m, link), word))
			continue;
		__atomic_store_n(&t->scan, link, __ATOMIC_RELAXED);
		return link;
	}
	return 0;
}

static uint32_t take_new(struct pb_bpf_map *m)
{
	struct hash_top *t = hash_top(m);
	uint32_t fresh = __atomic_load_n(&t->fresh, __ATOMIC_RELAXED);

	while (fresh < m->nr_elems)
		if (pb_replace32(&t->fresh, &fresh, fresh + 1) && own(m, elem(m, fresh + 1), 0))
			return fresh + 1;
	return 0;
}

uint32_t pb_bpf_hash_take_elem(struct pb_bpf_map *m, uint32_t bucket)
{
	struct hash_top *t = hash_top(m);
	uint32_t link = pop(m, &t->free[bucket % SHARDS].head);

	if (!link)
		link = take_new(m);
	for (uint32_t i = 1; !link && i < SHARDS; i++)
		link = pop(m, &t->free[(bucket + i) % SHARDS].head);
	if (!link)
		link = scan(m);
	if (!link && m->alive) {
		pb_bpf_hash_repair(m, 0);
		link = scan(m);
	}
	if (link)
		__atomic_store_n(&elem(m, link)->owner, (uint16_t)m->owner, __ATOMIC_RELAXED);
	return link;
}

/* ---- what dead processes left ----------------------------------------------------- */

struct lives {
	const struct pb_bpf_map *m;
	uint32_t asked[PB_BPF_MAX_OWNERS / 32], dead[PB_BPF_MAX_OWNERS / 32];
};

/* Asks once for each. */
static bool died(struct lives *l, uint32_t owner)
{
	uint32_t bit = 1u << owner % 32, i = owner / 32;

	if (!owner || owner >= PB_BPF_MAX_OWNERS || !l->m->alive)
		return false;
	if (!(l->asked[i] & bit)) {
		l->asked[i] |= bit;
		if (!l->m->alive(l->m, owner))
			l->dead[i] |= bit;
	}
	return l->dead[i] & bit;
}

/* An element behind one with the same key whose maker died before he could delete this. */
static void repair_twin(struct pb_bpf_map *m, struct lives *l, uint32_t link, uint64_t word)
{
	struct elem *e = elem(m, link);
	struct pb_bpf_found f = pb_bpf_hash_find(m, e->hash, e->key);

	if (f.link && f.link != link && died(l, elem(m, f.link)->owner) &&
	    pb_bpf_hash_mark(m, link, word & TAGS))
		pb_bpf_hash_sweep(m, e->hash & m->mask);
}

/* True: an element was lost, and is free now. */
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
		/* who unlinked it, and has not said so yet, finds that we have */
		if (!pb_bpf_hash_sweep(m, bucket) || pb_load(&e->next) != word ||
		    pb_bpf_hash_in_list(m, bucket, link))
			return false;
		break;
	case 0:
		if (!word)
			return false;
		if (!died(l, e->owner) || pb_bpf_hash_in_list(m, bucket, link)) {
			repair_twin(m, l, link, word);
			return false;
		}
		if (pb_load(&e->next) != word)
			return false;
		break;
	default:
		return false;
	}
	if (!own(m, e, word))
		return false;
	pb_bpf_hash_give_elem(m, link, owned_by(m, (word & TAGS) + TAG_ONE), bucket);
	return true;
}

bool pb_bpf_somebody_died(struct pb_bpf_map *m)
{
	uint64_t now = pb_rdtsc(), asked = __atomic_load_n(&m->asked, __ATOMIC_RELAXED);
	struct lives l = { .m = m };
	bool any = false;

	/* so that a full map that is hit all the time doesn't ask all the time */
	if (!m->alive || now - asked < 10000000 || !pb_replace(&m->asked, &asked, now))
		return false;
	for (uint32_t w = 0; w < PB_BPF_MAX_OWNERS / 32; w++)
		for (uint32_t left = pb_load32(&m->head->owners[w]); left; left &= left - 1) {
			uint32_t owner = w * 32 + (uint32_t)__builtin_ctz(left);

			if (owner == m->owner || !died(&l, owner))
				continue;
			__atomic_fetch_and(&m->head->owners[w], ~(1u << owner % 32), __ATOMIC_RELAXED);
			any = true;
		}
	if (any)
		pb_bpf_hash_repair(m, 0);
	return any;
}

/* Keys, and a sum of all buckets' words that is another one if any of them changed. */
static uint32_t count_keys(struct pb_bpf_map *m, uint64_t *sum)
{
	uint32_t keys = 0;

	*sum = 0;
	for (uint64_t b = 0; b <= m->mask; b++) {
		uint64_t word = pb_load(&m->buckets[b]);

		*sum = *sum * 31 + word;
		for (uint32_t n = 0; is_elem(m, LINK(word)) && n < m->nr_elems; n++) {
			word = pb_load(&elem(m, LINK(word))->next);
			*sum = *sum * 31 + word;
			keys += !(word & MARK);
		}
	}
	return keys;
}

/*
 * The counter is right but for what died beside it. A number that is found twice, with
 * the same words and the same counter before and after, is that of a moment in which
 * nobody was at work, or of operations that stand still; those count when they go on,
 * and the next repair sees to it.
 */
static void recount(struct pb_bpf_map *m)
{
	struct hash_top *t = hash_top(m);

	for (int tries = 0; tries < 8; tries++) {
		uint64_t sums[2];
		uint32_t count = pb_load32(&t->count), keys = count_keys(m, &sums[0]);

		if (count_keys(m, &sums[1]) != keys || sums[0] != sums[1])
			continue;
		if (pb_replace32(&t->count, &count, keys))
			return;
	}
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
	if (found)
		__atomic_fetch_add(&hash_top(m)->deaths, found, __ATOMIC_RELAXED);
	recount(m);
}
