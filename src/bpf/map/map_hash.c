/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * BPF_MAP_TYPE_HASH, LRU_HASH, and their per-CPU variants: lookup, update and removal by threads of
 * several processes, without a lock. map_hash.h has the layout and an element's states.
 *
 * Words. A bucket is a list. The list's head is a word {tag, link}. Each element's `next` is a word
 * {tag, state, link}. A link is an element's number plus one. At the end of a list, the link is END
 * and the bucket's number. Every change of a list is one cmpxchg of one of these words. Elements
 * are reused at once, so a word may get a link again that it had before. But it then has another
 * tag, so a cmpxchg from the older word fails.
 *
 * Lookup (find). During a walk, an element may be freed and reused in another list. So a walk reads
 * an element's word and key, and then rereads the word that led to the element. If that word hasn't
 * changed, the element was in the list when the walk read the element. A walk that sees a changed
 * word starts again. If a walk meets a deleted element, it first unlinks the element (sweep).
 *
 * Update, if the key is absent:
 *   1. read the bucket's word; search the whole list; the key isn't found
 *   2. take a free element, and room for one more key; fill the element
 *   3. link the element: a cmpxchg changes the bucket's word from the value read in step 1 to a new
 *      tag and the element's link
 * New keys are inserted only at the bucket's word. So if step 3 succeeds, no key was inserted since
 * step 1. If step 3 fails, the update starts again, and keeps the element that it has taken.
 *
 * Update, if the key is present: the new element is filled and linked to the successor of the old
 * element. Then one cmpxchg of the old element's word marks the old element as deleted and links
 * the new element after it. So a lookup finds either the old or the new element. KEPT means that
 * the new element has taken over the old element's room. Per-CPU values are changed in place. If
 * the update has BPF_F_LOCK, any value is changed in place. A value of up to SMALL bytes lies next
 * to `next`. One cmpxchg of 16 bytes changes such a value in place, and checks that the element
 * isn't deleted.
 *
 * Removal marks the element's word. The thread that unlinks the element owns it. This thread puts
 * the element on a stack of free elements. It also gives the element's room back, unless the word
 * has KEPT.
 *
 * Barriers. The cmpxchg in step 3 is a release, which publishes the filled element. pb_load() is an
 * acquire. A signal handler may run any operation between any two instructions. To the interrupted
 * operation the handler is like another thread. Operations don't wait for each other, with one
 * exception: an operation with BPF_F_LOCK waits for the lock of a value. An operation gives up
 * after MAX_WALKS walks that other operations have disturbed. In this case an update or removal
 * returns -EBUSY, and a lookup acts as if the key were absent.
 */
#include "bpf/map/map_hash.h"

/* ---- keys ------------------------------------------------------------------- */

static uint64_t mix(uint64_t h)
{
	h *= 0x9e3779b97f4a7c15ull;
	return h ^ h >> 32;
}

static inline uint32_t hash_of(const struct pb_bpf_map *m, const void *key)
{
	uint32_t n = m->attr.key_size;
	const char *p = key;
	uint64_t h = n, word;

	for (; n >= 8; p += 8, n -= 8) {
		__builtin_memcpy(&word, p, 8);
		h = mix(h ^ word);
	}
	if (n) {
		word = 0;
		if (n == 4)
			__builtin_memcpy(&word, p, 4);
		else
			memcpy(&word, p, n);
		h = mix(h ^ word);
	}
	return (uint32_t)(h ^ h >> 17);
}

uint32_t pb_bpf_hash_of(const struct pb_bpf_map *m, const void *key)
{
	return hash_of(m, key);
}

static bool same_key(const struct pb_bpf_map *m, const struct elem *e, const void *key)
{
	uint64_t a, b;
	uint32_t x, y;

	switch (m->attr.key_size) {
	case 4:
		__builtin_memcpy(&x, e->key, 4);
		__builtin_memcpy(&y, key, 4);
		return x == y;
	case 8:
		__builtin_memcpy(&a, e->key, 8);
		__builtin_memcpy(&b, key, 8);
		return a == b;
	default:
		return !memcmp(e->key, key, m->attr.key_size);
	}
}

/* ---- walks ------------------------------------------------------------------ */

/* Walks the list once. word: the bucket's word, which the caller has read. */
static inline __attribute__((always_inline)) struct pb_bpf_found
find(const struct pb_bpf_map *m, uint32_t bucket, uint64_t word, uint32_t hash, const void *key)
{
	const uint64_t *at = &m->buckets[bucket];

	for (uint32_t n = 0; !(LINK(word) & END); n++) {
		struct elem *e;
		uint64_t next;
		bool same;

		if (!is_elem(m, LINK(word)) || n > m->nr_elems)
			return (struct pb_bpf_found){ .lost = DAMAGED };
		e = elem(m, LINK(word));
		next = pb_load(&e->next);
		same = e->hash == hash && same_key(m, e, key);
		/* was the element in this list while its word and key were read? */
		if (pb_load(at) != word || next & OUT)
			return (struct pb_bpf_found){ .lost = LOST };
		if (next & MARK)
			return (struct pb_bpf_found){ .lost = SWEEP };
		if (same)
			return (struct pb_bpf_found){ .link = LINK(word), .word = next,
				.tag = next & TAGS };
		at = &e->next;
		word = next;
	}
	return (struct pb_bpf_found){ .lost = LINK(word) == (END | bucket) ? 0 : LOST };
}

/* Repeats the walk until no other operation disturbs it, at most MAX_WALKS times. *word: the
 * bucket's word. */
static __attribute__((noinline)) struct pb_bpf_found
find_disturbed(struct pb_bpf_map *m, uint32_t hash, const void *key, uint64_t *word, uint32_t shard)
{
	uint32_t bucket = hash & m->mask;
	struct pb_bpf_found f = { .lost = LOST };

	for (int walks = 0; f.lost && walks < MAX_WALKS; walks++) {
		*word = pb_load(&m->buckets[bucket]);
		f = find(m, bucket, *word, hash, key);
		if (f.lost == DAMAGED)
			break;
		if (f.lost == SWEEP)
			pb_bpf_hash_sweep(m, bucket, shard);
	}
	return f;
}

static inline __attribute__((always_inline)) struct pb_bpf_found
find_again(struct pb_bpf_map *m, uint32_t hash, const void *key, uint64_t *word, uint32_t shard)
{
	struct pb_bpf_found f;

	*word = pb_load(&m->buckets[hash & m->mask]);
	f = find(m, hash & m->mask, *word, hash, key);
	return pb_likely(!f.lost) ? f : find_disturbed(m, hash, key, word, shard);
}

struct pb_bpf_found pb_bpf_hash_find(struct pb_bpf_map *m, uint32_t hash, const void *key)
{
	uint64_t word;

	return find_again(m, hash, key, &word, shard_of(m, NULL));
}

/* Frees an element that this thread has unlinked. If this process dies in this function, a repair
 * sees by e->room whether the element still holds room. */
static void put_away(struct pb_bpf_map *m, uint32_t link, uint64_t word, uint32_t shard)
{
	struct elem *e = elem(m, link);
	uint64_t owned = owned_by(m, word & TAGS);
	bool room = !(word & KEPT);

	__atomic_store_n(&e->room, room, __ATOMIC_RELAXED);
	if (!pb_replace(&e->next, &word, owned))
		return;		/* a repair has mistaken this process for dead, and has taken the
				 * element */
	if (room)
		pb_bpf_hash_give_room(m, shard);
	__atomic_store_n(&e->room, 0, __ATOMIC_RELEASE);
	pb_bpf_hash_give_elem(m, link, owned, shard);
}

/* Unlinks the list's deleted elements. Returns 0, LOST or DAMAGED. */
static int sweep_once(struct pb_bpf_map *m, uint32_t bucket, uint32_t shard)
{
	uint64_t *at = &m->buckets[bucket], word = pb_load(at);

	/* at: the word that leads to the element. It is the bucket's word, or the word of an
	 * element that isn't deleted */
	for (uint32_t n = 0; !(LINK(word) & END); n++) {
		uint32_t link = LINK(word);
		uint64_t next, new;

		if (!is_elem(m, link) || n > m->nr_elems)
			return DAMAGED;
		if (STATE(word))
			return LOST;
		next = pb_load(&elem(m, link)->next);
		if (pb_load(at) != word)
			return LOST;
		if (next & OUT)
			return DAMAGED;
		if (!(next & MARK)) {
			at = &elem(m, link)->next;
			word = next;
			continue;
		}
		/* the tag must be new, because this word may get the same link again when the
		 * element is reused */
		new = ((word & TAGS) + TAG_ONE) | LINK(next);
		if (!pb_replace(at, &word, new))
			return LOST;
		put_away(m, link, next, shard);
		word = new;
	}
	return 0;
}

bool pb_bpf_hash_sweep(struct pb_bpf_map *m, uint32_t bucket, uint32_t shard)
{
	int ret = LOST;

	for (int walks = 0; ret == LOST && walks < MAX_WALKS; walks++)
		ret = sweep_once(m, bucket, shard);
	return !ret;
}

int pb_bpf_hash_in_list(struct pb_bpf_map *m, uint32_t bucket, uint32_t link)
{
	for (int walks = 0; walks < MAX_WALKS; walks++) {
		const uint64_t *at = &m->buckets[bucket];
		uint64_t word = pb_load(at), next;

		for (uint32_t n = 0; is_elem(m, LINK(word)) && n <= m->nr_elems; n++) {
			if (LINK(word) == link)
				return 1;
			next = pb_load(&elem(m, LINK(word))->next);
			if (pb_load(at) != word || STATE(next))
				break;
			at = &elem(m, LINK(word))->next;
			word = next;
		}
		if (LINK(word) == (END | bucket) && pb_load(at) == word)
			return 0;
		if (!is_elem(m, LINK(word)) && pb_load(at) == word)
			return -1;
		if (!pb_bpf_hash_sweep(m, bucket, 0))
			return -1;
	}
	return -1;
}

bool pb_bpf_hash_mark(struct pb_bpf_map *m, uint32_t link, uint64_t tag)
{
	struct elem *e = elem(m, link);
	uint64_t next = pb_load(&e->next);

	while (!STATE(next) && (next & TAGS) == tag)
		if (pb_replace(&e->next, &next, next | MARK))
			return true;
	return false;
}

/* ---- lookups -------------------------------------------------------------------- */

static void touch(struct elem *e)
{
	if (!e->ref)
		e->ref = 1;
}

static inline uint32_t lookup_link(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	uint64_t word;
	struct pb_bpf_found f = find_again(m, hash_of(m, key), key, &word, shard_of(m, run));

	if (f.link && run && is_lru(m))
		touch(elem(m, f.link));
	return f.link;
}

static void *hash_lookup(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	uint32_t link = lookup_link(m, key, run);

	return link ? value_of(m, link) : NULL;
}

static void *percpu_lookup(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	uint32_t link = lookup_link(m, key, run);

	return link ? cpu_slot_value(m, link, pb_bpf_map_cpu_slot(m, run)) : NULL;
}

/* Copies the element's value. Returns 0 or -errno. */
static int copy_out(struct pb_bpf_map *m, uint32_t link, void *value, uint64_t flags)
{
	if (is_percpu(m->attr.type))
		pb_bpf_cpu_slots_out(m, value, cpu_slot_value(m, link, 0));
	else if (flags & BPF_F_LOCK)
		return pb_bpf_value_out_locked(m, value, value_of(m, link));
	else
		pb_bpf_value_out(m, value, value_of(m, link));
	return 0;
}

static int hash_read(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags)
{
	for (int walks = 0; walks < MAX_WALKS; walks++) {
		uint64_t word;
		struct pb_bpf_found f = find_again(m, hash_of(m, key), key, &word,
						   shard_of(m, NULL));
		int err = f.link ? copy_out(m, f.link, value, flags) : -ENOENT;

		pb_barrier();
		/* if the element was reused meanwhile, the copy isn't the key's value */
		if (err || pb_bpf_hash_is_same(m, f.link, f.tag))
			return err;
	}
	return -ENOENT;
}

/* ---- updates -------------------------------------------------------------------- */

struct change {
	const void *key, *value;
	uint64_t flags;
	struct pb_bpf_run *run;
	bool all;		/* if set, `value` has the values of all per-CPU slots */
	uint32_t hash, bucket, shard;
};

static bool take_room(struct pb_bpf_map *m, uint32_t shard)
{
	for (int tries = 0; tries < 64; tries++) {
		if (pb_bpf_hash_take_room(m, shard))
			return true;
		if (!(is_lru(m) ? pb_bpf_lru_evict(m, shard) : pb_bpf_repair_after_deaths(m)))
			break;
	}
	return false;
}

static void fill_cpu_slots(const struct pb_bpf_map *m, uint32_t link, const struct change *c)
{
	if (c->all)
		pb_bpf_cpu_slots_in(m, cpu_slot_value(m, link, 0), c->value);
	else
		pb_bpf_value_copy(m, cpu_slot_value(m, link, pb_bpf_map_cpu_slot(m, c->run)),
				  c->value);
}

static void fill(const struct pb_bpf_map *m, uint32_t link, const struct change *c)
{
	struct elem *e = elem(m, link);

	e->hash = c->hash;
	if (m->attr.key_size == 8)
		__builtin_memcpy(e->key, c->key, 8);
	else
		memcpy(e->key, c->key, m->attr.key_size);
	if (is_percpu(m->attr.type)) {
		for (uint32_t l = 0; (!c->all || m->special) && l < m->cpu_slots; l++)
			memset(cpu_slot_value(m, link, l), 0, m->value_room);
		fill_cpu_slots(m, link, c);
		return;
	}
	if (pb_unlikely(m->special))
		pb_bpf_value_clear(m, value_of(m, link));
	else if (m->value_room <= SMALL)
		memset(value_of(m, link), 0, m->value_room);
	pb_bpf_value_copy(m, value_of(m, link), c->value);
}

static bool is_small(const struct pb_bpf_map *m)
{
	return m->attr.value_size <= SMALL && !is_percpu(m->attr.type) && !m->special;
}

/* Replaces the value if the element isn't deleted and still has its tag. Otherwise returns 1. If a
 * program changes the value at the same time, the cmpxchg fails and is tried again. */
static int change_small(struct pb_bpf_map *m, struct elem *e, const struct change *c,
			struct pb_bpf_found old)
{
	uint64_t next = old.word, was = __atomic_load_n(&e->small, __ATOMIC_RELAXED), new = 0;

	pb_bpf_value_copy(m, &new, c->value);
	while (!STATE(next) && (next & TAGS) == old.tag)
		if (pb_replace16(&e->next, &next, &was, next, new))
			return 0;
	return 1;
}

/* Changes a value in place. Returns 1 if the element is deleted, or may have been reused before the
 * change. In this case the caller must search again. */
static int change_in_place(struct pb_bpf_map *m, const struct change *c, struct pb_bpf_found old)
{
	struct elem *e = elem(m, old.link);
	uint64_t *word;
	bool gone;
	int err = 0;

	if (is_small(m)) {
		err = change_small(m, e, c, old);
		if (!err && is_lru(m))
			touch(e);
		return err;
	}
	word = pb_bpf_hash_begin_change(m, old.link, c->run);
	if (!pb_bpf_hash_is_same(m, old.link, old.tag)) {
		pb_bpf_hash_end_change(m, old.link, word, c->run);
		return 1;
	}
	if (c->flags & BPF_F_LOCK)
		err = pb_bpf_value_in_locked(m, value_of(m, old.link), c->value, c->run);
	else
		fill_cpu_slots(m, old.link, c);
	if (is_lru(m))
		touch(e);
	pb_barrier();
	/* if the change is announced (map_hash.h), the element can be deleted, but not reused */
	gone = word ? STATE(pb_load(&e->next)) : !pb_bpf_hash_is_same(m, old.link, old.tag);
	pb_bpf_hash_end_change(m, old.link, word, c->run);
	return err ? err : gone;
}

/* Returns 0 if the flags permit the update, or -errno. */
static int allowed(struct pb_bpf_found old, uint64_t flags)
{
	if (old.link)
		return (flags & ~(uint64_t)BPF_F_LOCK) == BPF_NOEXIST ? -EEXIST : 0;
	return (flags & ~(uint64_t)BPF_F_LOCK) == BPF_EXIST ? -ENOENT : 0;
}

/* Takes an element and stores its link in *new, unless an earlier try has done so. For a new key,
 * also takes room, unless an earlier try has taken room. *counted: whether room is taken. */
static int prepare(struct pb_bpf_map *m, struct change *c, bool key_more, uint32_t *new,
		   bool *counted)
{
	if (!*new)
		*new = pb_bpf_hash_take_elem(m, c->shard);
	if (!*new)
		return -ENOMEM;
	if (!key_more || *counted)
		return 0;
	__atomic_store_n(&elem(m, *new)->room, 1, __ATOMIC_RELEASE);
	*counted = take_room(m, c->shard);
	return *counted ? 0 : is_lru(m) ? -ENOMEM : -E2BIG;
}

/*
 * Puts a new element into the list. A new key goes to the list's head. If the element replaces an
 * old element, one cmpxchg puts it after the old element and deletes the old element. The new
 * element takes over the old element's room, unless an earlier try has taken room for the new
 * element. Returns 0 or -errno. Returns 1 if the cmpxchg has failed, because another thread has
 * changed the word.
 */
static int insert(struct pb_bpf_map *m, struct change *c, uint64_t word, struct pb_bpf_found old,
		  uint32_t *new, bool *counted)
{
	int err = prepare(m, c, !old.link, new, counted);
	uint64_t tag;
	struct elem *e;
	bool done;

	if (err)
		return err;
	e = elem(m, *new);
	fill(m, *new, c);
	tag = e->next & TAGS;
	e->ref = old.link != 0;
	__atomic_store_n(&e->next, tag | LINK(old.link ? old.word : word), __ATOMIC_RELEASE);
	if (old.link)
		done = pb_replace(&elem(m, old.link)->next, &old.word,
				  old.tag | MARK | (*counted ? 0 : KEPT) | *new);
	else
		done = pb_replace(&m->buckets[c->bucket], &word, (word & TAGS) + TAG_ONE + *new);
	/* the new element didn't get into the list, so its word must again show that a thread of
	 * this process owns the element */
	if (!done)
		__atomic_store_n(&e->next, owned_by(m, tag), __ATOMIC_RELEASE);
	return !done;
}

static int put(struct pb_bpf_map *m, struct change *c)
{
	bool counted = false, in_place = is_percpu(m->attr.type) || c->flags & BPF_F_LOCK ||
		       is_small(m), used = false;
	struct pb_bpf_found old;
	uint32_t new = 0;
	uint64_t word;
	int err = 1;

	c->hash = hash_of(m, c->key);
	c->bucket = c->hash & m->mask;
	c->shard = shard_of(m, c->run);
	for (int walks = 0; err > 0 && walks < MAX_WALKS; walks++) {
		old = find_again(m, c->hash, c->key, &word, c->shard);
		if (old.lost)
			break;
		err = allowed(old, c->flags);
		if (err)
			break;
		used = !old.link || !in_place;
		err = used ? insert(m, c, word, old, &new, &counted) : change_in_place(m, c, old);
	}
	if (err || !used) {
		if (counted)
			pb_bpf_hash_give_room(m, c->shard);
		if (new)
			pb_bpf_hash_give_elem(m, new, owned_by(m, elem(m, new)->next & TAGS),
					      c->shard);
	} else if (old.link) {
		pb_bpf_hash_sweep(m, c->bucket, c->shard);
	}
	return err > 0 ? -EBUSY : err;
}

static int hash_update(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags,
		       struct pb_bpf_run *run)
{
	struct change c = { key, value, flags, run, false, 0, 0, 0 };

	if ((is_lru(m) ? flags : flags & ~(uint64_t)BPF_F_LOCK) > BPF_EXIST ||
	    (flags & BPF_F_LOCK && m->types.spin_lock_off < 0))
		return -EINVAL;
	return put(m, &c);
}

static int percpu_update(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags,
			 struct pb_bpf_run *run)
{
	struct change c = { key, value, flags, run, false, 0, 0, 0 };

	return flags > BPF_EXIST ? -EINVAL : put(m, &c);
}

static int percpu_write(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags)
{
	struct change c = { key, value, flags, NULL, true, 0, 0, 0 };

	return flags > BPF_EXIST ? -EINVAL : put(m, &c);
}

#define HASH_OPS \
	.size = pb_bpf_hash_size, .format = pb_bpf_hash_format, \
	.written = pb_bpf_hash_written, .open = pb_bpf_hash_open, \
	.remove = pb_bpf_hash_remove, .next_key = pb_bpf_hash_next_key, .each = pb_bpf_hash_each, \
	PB_BPF_NO_QUEUE, .take = pb_bpf_hash_take, .repair = pb_bpf_hash_repair, \
	.abandon = pb_bpf_hash_abandon

const struct pb_bpf_map_ops pb_bpf_hash_ops = {
	HASH_OPS, .lookup = hash_lookup, .update = hash_update, .read = hash_read,
	.write = pb_bpf_write_value,
};

const struct pb_bpf_map_ops pb_bpf_percpu_hash_ops = {
	HASH_OPS, .lookup = percpu_lookup, .update = percpu_update, .read = hash_read,
	.write = percpu_write,
};
