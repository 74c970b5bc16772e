/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * BPF_MAP_TYPE_HASH.
 *
 *   head | struct hash_top | buckets u64[] | elements
 *
 * A bucket is a word {link, tag}: link is an element's number and one, or END and
 * the bucket's number. An element's `next` has the link, MARK when it is deleted,
 * and the tag of its present life. Insertion is at a bucket's word only, which then
 * has a new tag: who replaces the word that he read before he looked through the
 * list knows that no key came meanwhile. Who marks an element has deleted it; who
 * unlinks it gives it back. Free elements are a stack of the same kind of words.
 *
 * An element that is free may be in another list soon, or be filled for one. So a
 * step is believed only if the word that led to the element is still the same when
 * the element's own has been read: then it was in the list all the while. Who finds
 * it changed, or walks for too long, begins anew.
 */
#include "base/base.h"
#include "base/mem.h"
#include "bpf/map.h"

#define END		0x80000000u
#define MARK		(1ull << 32)
#define TAG_ONE		(1ull << 33)
#define TAGS		(~(TAG_ONE - 1))
#define LINK(word)	((uint32_t)(word))
#define SPARE		64	/* elements for updates that are under way */

#define SHARDS		16	/* stacks of free elements, by bucket: an update takes one and gives one */

struct hash_top {
	uint32_t count;		/* keys */
	uint32_t fresh;		/* elements that were never used lie from here on */
	uint64_t pad[7];
	struct {
		uint64_t head;	/* {link, tag}; link 0: none */
		uint64_t pad[7];
	} free[SHARDS];
};

struct elem {
	uint64_t next;
	uint32_t hash, pad;
	char key[];		/* rounded up to 8, then the value */
};

static struct hash_top *top(const struct pb_bpf_map *m)
{
	return (struct hash_top *)(m->head + 1);
}

static struct elem *elem(const struct pb_bpf_map *m, uint32_t link)
{
	return (struct elem *)(m->elems + (uint64_t)(link - 1) * m->elem_size);
}

static void *value_of(const struct pb_bpf_map *m, struct elem *e)
{
	return e->key + m->key_room;
}

static uint64_t load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static bool replace(uint64_t *p, uint64_t *old, uint64_t new)
{
	return __atomic_compare_exchange_n(p, old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* ---- layout --------------------------------------------------------------- */

struct layout {
	uint32_t key_room, elem_size, nr_buckets, nr_elems;
	uint64_t elems, size;
};

static bool lay_out(const struct pb_bpf_map_attr *a, struct layout *l)
{
	uint64_t buckets = 1;

	if (!a->key_size || !a->value_size || !a->max_entries || a->key_size > 512 ||
	    a->value_size > 1u << 26 || a->max_entries > 1u << 30)
		return false;
	while (buckets < a->max_entries)
		buckets *= 2;
	l->key_room = pb_align_up(a->key_size, 8u);
	l->elem_size = (uint32_t)sizeof(struct elem) + l->key_room + pb_align_up(a->value_size, 8u);
	l->nr_buckets = (uint32_t)buckets;
	l->nr_elems = a->max_entries + SPARE;
	l->elems = pb_align_up(sizeof(struct pb_bpf_map_head) + sizeof(struct hash_top) + buckets * 8, (uint64_t)64);
	l->size = l->elems + (uint64_t)l->nr_elems * l->elem_size;
	return true;
}

static uint64_t hash_size(const struct pb_bpf_map_attr *a, int *err)
{
	struct layout l;

	*err = -22;
	if (a->flags & ~(uint32_t)BPF_F_NO_PREALLOC || !lay_out(a, &l))
		return 0;
	return l.size;
}

static void hash_format(void *block, const struct pb_bpf_map_attr *a)
{
	struct pb_bpf_map_head *head = block;
	uint64_t *buckets = (uint64_t *)((struct hash_top *)(head + 1) + 1);
	struct layout l;

	if (!lay_out(a, &l))
		return;
	for (uint32_t b = 0; b < l.nr_buckets; b++)
		buckets[b] = END | b;
}

static bool hash_open(struct pb_bpf_map *m)
{
	struct layout l;

	if (!lay_out(&m->attr, &l) || m->head->size < l.size)
		return false;
	m->buckets = (uint64_t *)(top(m) + 1);
	m->elems = (char *)m->head + l.elems;
	m->elem_size = l.elem_size;
	m->nr_elems = l.nr_elems;
	m->mask = l.nr_buckets - 1;
	m->key_room = l.key_room;
	return true;
}

/* ---- elements that are free ------------------------------------------------- */

static uint32_t pop(struct pb_bpf_map *m, uint64_t *stack)
{
	uint64_t head = load(stack);

	while (LINK(head) && LINK(head) <= m->nr_elems) {
		uint32_t link = LINK(head), next = LINK(load(&elem(m, link)->next));

		if (replace(stack, &head, (head & TAGS) + TAG_ONE + next))
			return link;
	}
	return 0;
}

/* An element with a new life. */
static uint32_t take_elem(struct pb_bpf_map *m, uint32_t bucket)
{
	struct hash_top *t = top(m);
	uint32_t link = pop(m, &t->free[bucket % SHARDS].head);
	uint32_t fresh = __atomic_load_n(&t->fresh, __ATOMIC_RELAXED);

	while (!link && fresh < m->nr_elems)
		if (__atomic_compare_exchange_n(&t->fresh, &fresh, fresh + 1, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			link = fresh + 1;
	for (uint32_t i = 1; !link && i < SHARDS; i++)
		link = pop(m, &t->free[(bucket + i) % SHARDS].head);
	return link;
}

static void give_elem(struct pb_bpf_map *m, uint32_t link, uint32_t bucket)
{
	uint64_t *stack = &top(m)->free[bucket % SHARDS].head, head = load(stack);
	struct elem *e = elem(m, link);
	uint64_t life = (load(&e->next) & TAGS) + TAG_ONE;

	do
		__atomic_store_n(&e->next, life | MARK | LINK(head), __ATOMIC_RELEASE);
	while (!replace(stack, &head, (head & TAGS) + TAG_ONE + link));
}

/* ---- keys ------------------------------------------------------------------- */

static uint64_t mix(uint64_t h)
{
	h *= 0x9e3779b97f4a7c15ull;
	return h ^ h >> 32;
}

static uint32_t hash_of(const struct pb_bpf_map *m, const void *key)
{
	uint32_t n = m->attr.key_size;
	const char *p = key;
	uint64_t h = n, word;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&word, p, 8);
		h = mix(h ^ word);
	}
	if (n) {
		word = 0;
		if (n == 4)
			memcpy(&word, p, 4);
		else
			memcpy(&word, p, n);
		h = mix(h ^ word);
	}
	return (uint32_t)(h ^ h >> 17);
}

static bool same_key(const struct pb_bpf_map *m, const struct elem *e, const void *key)
{
	uint64_t a, b;
	uint32_t x, y;

	switch (m->attr.key_size) {
	case 4:
		memcpy(&x, e->key, 4);
		memcpy(&y, key, 4);
		return x == y;
	case 8:
		memcpy(&a, e->key, 8);
		memcpy(&b, key, 8);
		return a == b;
	default:
		return !memcmp(e->key, key, m->attr.key_size);
	}
}

/* ---- walks ------------------------------------------------------------------ */

struct found {
	uint32_t link;		/* of the first element with the key that isn't deleted, or 0 */
	uint64_t life;		/* its tag, read before its key */
	bool lost;		/* the walk came off its list, and says nothing */
};

static struct found find(const struct pb_bpf_map *m, uint32_t bucket, uint64_t word, uint32_t hash,
			 const void *key)
{
	const struct found lost = { .lost = true };
	const uint64_t *at = &m->buckets[bucket];

	for (uint32_t n = 0; !(LINK(word) & END); n++) {
		struct elem *e;
		uint64_t next;
		bool same;

		if (!LINK(word) || LINK(word) > m->nr_elems || n > m->nr_elems)
			return lost;
		e = elem(m, LINK(word));
		next = load(&e->next);
		same = !(next & MARK) && e->hash == hash && same_key(m, e, key);
		if (load(at) != word)
			return lost;
		if (same)
			return (struct found){ LINK(word), next & TAGS, false };
		at = &e->next;
		word = next;
	}
	return (struct found){ 0 };
}

#define MOST_WALKS	1000	/* each was disturbed by somebody who got further */

/* Takes deleted elements out of the list; false: somebody came in between. */
static bool sweep_once(struct pb_bpf_map *m, uint32_t bucket)
{
	uint64_t *at = &m->buckets[bucket], word = load(at);

	for (uint32_t n = 0; !(LINK(word) & END); n++) {
		uint32_t link = LINK(word);
		uint64_t next, new;

		if (!link || link > m->nr_elems || n > m->nr_elems || (at != &m->buckets[bucket] && word & MARK))
			return false;
		next = load(&elem(m, link)->next);
		if (load(at) != word)
			return false;
		if (!(next & MARK)) {
			at = &elem(m, link)->next;
			word = next;
			continue;
		}
		new = (word & TAGS) | LINK(next);
		if (at == &m->buckets[bucket])
			new += TAG_ONE;
		if (!replace(at, &word, new))
			return false;
		give_elem(m, link, bucket);
		word = new;
	}
	return true;
}

static void sweep(struct pb_bpf_map *m, uint32_t bucket)
{
	for (int walks = 0; walks < MOST_WALKS && !sweep_once(m, bucket); walks++)
		;
}

static bool mark(struct pb_bpf_map *m, uint32_t link, uint64_t life)
{
	struct elem *e = elem(m, link);
	uint64_t next = load(&e->next);

	while (!(next & MARK) && (next & TAGS) == life)
		if (replace(&e->next, &next, next | MARK))
			return true;
	return false;
}

/* ---- operations --------------------------------------------------------------- */

static void *hash_lookup(struct pb_bpf_map *m, const void *key)
{
	uint32_t hash = hash_of(m, key), bucket = hash & m->mask;
	struct found f = { .lost = true };

	for (int walks = 0; f.lost && walks < MOST_WALKS; walks++)
		f = find(m, bucket, load(&m->buckets[bucket]), hash, key);
	return f.link ? value_of(m, elem(m, f.link)) : NULL;
}

/* The number of keys may rise by one. */
static bool count_one(struct pb_bpf_map *m)
{
	if (__atomic_add_fetch(&top(m)->count, 1, __ATOMIC_RELAXED) <= m->attr.max_entries)
		return true;
	__atomic_sub_fetch(&top(m)->count, 1, __ATOMIC_RELAXED);
	return false;
}

static int hash_update(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags)
{
	uint32_t hash = hash_of(m, key), bucket = hash & m->mask, new = 0;
	uint64_t word = load(&m->buckets[bucket]), life;
	struct found old;
	bool counted = false;
	struct elem *e;
	int err = 0;

	if (flags > BPF_EXIST)
		return -22;
	for (int walks = 0;; walks++) {
		old = find(m, bucket, word, hash, key);
		if (old.lost) {
			err = walks < MOST_WALKS ? 0 : -16;
			if (err)
				break;
			word = load(&m->buckets[bucket]);
			continue;
		}
		err = old.link && flags == BPF_NOEXIST ? -17 :
		      !old.link && flags == BPF_EXIST ? -2 : 0;
		if (!err && !old.link && !counted) {
			counted = count_one(m);
			err = counted ? 0 : -7;
		}
		if (!err && !new) {
			new = take_elem(m, bucket);
			err = new ? 0 : -12;
		}
		if (err)
			break;
		e = elem(m, new);
		life = (load(&e->next) & TAGS) + TAG_ONE;
		e->hash = hash;
		memcpy(e->key, key, m->attr.key_size);
		memcpy(value_of(m, e), value, m->attr.value_size);
		__atomic_store_n(&e->next, life | LINK(word), __ATOMIC_RELEASE);
		if (replace(&m->buckets[bucket], &word, (word & TAGS) + TAG_ONE + new))
			break;
	}
	if (err) {
		if (new)
			give_elem(m, new, bucket);
		if (counted)
			__atomic_sub_fetch(&top(m)->count, 1, __ATOMIC_RELAXED);
		return err;
	}
	if (old.link) {
		/* who deleted it meanwhile has counted that */
		if (mark(m, old.link, old.life) == counted)
			__atomic_add_fetch(&top(m)->count, counted ? -1u : 1u, __ATOMIC_RELAXED);
		sweep(m, bucket);
	}
	return 0;
}

static int hash_remove(struct pb_bpf_map *m, const void *key)
{
	uint32_t hash = hash_of(m, key), bucket = hash & m->mask;

	for (int walks = 0; walks < MOST_WALKS; walks++) {
		struct found f = find(m, bucket, load(&m->buckets[bucket]), hash, key);

		if (f.lost)
			continue;
		if (!f.link)
			return -2;
		if (!mark(m, f.link, f.life))
			continue;
		__atomic_sub_fetch(&top(m)->count, 1, __ATOMIC_RELAXED);
		sweep(m, bucket);
		return 0;
	}
	return -16;
}

/* The first key at or behind the bucket. */
static int first_from(struct pb_bpf_map *m, uint32_t bucket, void *next)
{
	for (uint64_t b = bucket; b <= m->mask; b++) {
		uint32_t link = LINK(load(&m->buckets[b]));

		for (uint32_t n = 0; !(link & END) && link && link <= m->nr_elems && n <= m->nr_elems; n++) {
			uint64_t word = load(&elem(m, link)->next);

			if (!(word & MARK)) {
				memcpy(next, elem(m, link)->key, m->attr.key_size);
				return 0;
			}
			link = LINK(word);
		}
	}
	return -2;
}

static int hash_next_key(struct pb_bpf_map *m, const void *key, void *next)
{
	uint32_t hash, bucket, link;
	struct found f;

	if (!key)
		return first_from(m, 0, next);
	hash = hash_of(m, key);
	bucket = hash & m->mask;
	f = find(m, bucket, load(&m->buckets[bucket]), hash, key);
	if (!f.link)
		return first_from(m, 0, next);
	link = LINK(load(&elem(m, f.link)->next));
	for (uint32_t n = 0; !(link & END) && link && link <= m->nr_elems && n <= m->nr_elems; n++) {
		uint64_t word = load(&elem(m, link)->next);

		if (!(word & MARK)) {
			memcpy(next, elem(m, link)->key, m->attr.key_size);
			return 0;
		}
		link = LINK(word);
	}
	return bucket < m->mask ? first_from(m, bucket + 1, next) : -2;
}

const struct pb_bpf_map_ops pb_bpf_hash_ops = {
	.size = hash_size, .format = hash_format, .open = hash_open, .lookup = hash_lookup,
	.update = hash_update, .remove = hash_remove, .next_key = hash_next_key,
};
