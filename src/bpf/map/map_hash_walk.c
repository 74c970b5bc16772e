/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Iterates over a hash's elements. */
#include "bpf/map/map_hash.h"
#include "bpf/map/map_sys.h"

#define MOST	32	/* number of elements of a bucket that are collected at once; on average a
			 * bucket has at most one element */

#define MAX_RESTARTS	64	/* a callback that replaces elements could make the walk begin
				 * again for ever */

struct seen {
	uint64_t all;	/* number of elements that were seen so far. Limits the walk if a damaged
			 * list is circular */
	uint32_t nr, restarts;	/* restarts: how often the walk began again in a bucket, because the
				 * last collected element was gone */
	bool more;
	uint32_t after_hash;	/* hash of the element after which the next look begins */
	uint32_t link[MOST], hash[MOST];
	uint64_t tag[MOST];
};

/* Collects at most MOST elements of a bucket. Begins after element `after`, whose hash is
 * s->after_hash. If `after` is 0, or is no longer in the bucket with this hash, begins with the
 * first element, but at most MAX_RESTARTS times in a walk. s->more: the bucket has more elements.
 * Returns 0, LOST, SWEEP or DAMAGED. */
static int look_once(struct pb_bpf_map *m, uint32_t bucket, uint32_t after, struct seen *s)
{
	const uint64_t *at = &m->buckets[bucket];
	uint64_t word = pb_load(at);
	bool on = !after;

	s->nr = 0;
	s->more = false;
	for (uint32_t n = 0; !(LINK(word) & END); n++) {
		uint32_t link = LINK(word), hash;
		uint64_t next;

		if (!is_elem(m, link) || n > m->nr_elems)
			return DAMAGED;
		next = pb_load(&elem(m, link)->next);
		hash = pb_load32(&elem(m, link)->hash);
		if (pb_load(at) != word || next & OUT)
			return LOST;
		if (next & MARK)
			return SWEEP;
		if (on) {
			s->more = s->nr == MOST;
			if (s->more)
				return 0;
			s->link[s->nr] = link;
			s->hash[s->nr] = hash;
			s->tag[s->nr++] = next & TAGS;
		}
		on |= link == after && hash == s->after_hash;
		at = &elem(m, link)->next;
		word = next;
	}
	if (LINK(word) != (END | bucket))
		return LOST;
	if (on || s->restarts == MAX_RESTARTS)
		return 0;
	s->restarts++;
	return look_once(m, bucket, 0, s);
}

static void look(struct pb_bpf_map *m, uint32_t bucket, uint32_t after, struct seen *s)
{
	int ret = s->all > 8ull * m->nr_elems ? DAMAGED : LOST;

	for (int walks = 0; ret && ret != DAMAGED && walks < MAX_WALKS; walks++) {
		ret = look_once(m, bucket, after, s);
		if (ret == SWEEP)
			pb_bpf_hash_sweep(m, bucket, shard_of(m, NULL));
	}
	s->all += s->nr;
	if (!ret)
		return;
	s->nr = 0;
	s->more = false;
}

/* Returns whether the i-th collected element is still in its bucket's list. An element also gets
 * another tag when its successor is unlinked. In this case, stores the new tag in s->tag. The
 * element may also have another tag because it was reused for another key of the bucket, which then
 * has another hash. */
static bool lives(struct pb_bpf_map *m, uint32_t bucket, struct seen *s, uint32_t i)
{
	const struct elem *e = elem(m, s->link[i]);
	uint64_t word = pb_load(&e->next);

	if (STATE(word))
		return false;
	if ((word & TAGS) == s->tag[i])
		return true;
	s->tag[i] = word & TAGS;
	return pb_bpf_hash_in_list(m, bucket, s->link[i]) == 1 && pb_load32(&e->hash) == s->hash[i];
}

/* Copies the key of the i-th collected element. False: the element is deleted. If the tag changes,
 * the copy is repeated, because the element may have been reused meanwhile. */
static bool copy_key(struct pb_bpf_map *m, uint32_t bucket, struct seen *s, uint32_t i, void *key)
{
	for (int walks = 0; walks < MAX_WALKS; walks++) {
		uint64_t was = s->tag[i];

		memcpy(key, elem(m, s->link[i])->key, m->attr.key_size);
		pb_barrier();
		if (!lives(m, bucket, s, i))
			return false;
		if (s->tag[i] == was)
			return true;
	}
	return false;
}

/* Copies the key of the first collected element that isn't deleted. */
static bool copy_first(struct pb_bpf_map *m, uint32_t bucket, struct seen *s, void *next)
{
	for (uint32_t i = 0; i < s->nr; i++)
		if (copy_key(m, bucket, s, i, next))
			return true;
	return false;
}

int pb_bpf_hash_next_key(struct pb_bpf_map *m, const void *key, void *next)
{
	uint32_t hash = key ? pb_bpf_hash_of(m, key) : 0, after = 0;
	uint64_t bucket = 0;
	struct seen s = { .after_hash = hash };

	if (key) {
		after = pb_bpf_hash_find(m, hash, key).link;
		if (after)
			bucket = hash & m->mask;
	}
	for (; bucket <= m->mask; bucket++, after = 0) {
		if (LINK(pb_load(&m->buckets[bucket])) & END)
			continue;
		/* if all collected elements are deleted by now, look again */
		for (int walks = 0; walks < MOST; walks++) {
			look(m, (uint32_t)bucket, after, &s);
			if (copy_first(m, (uint32_t)bucket, &s, next))
				return 0;
			if (!s.nr)
				break;
		}
	}
	return -ENOENT;
}

int64_t pb_bpf_hash_each(struct pb_bpf_map *m, pb_bpf_map_fn *fn, void *arg, struct pb_bpf_run *run)
{
	uint32_t cpu_slot = pb_bpf_map_cpu_slot(m, run);
	int64_t nr = 0;
	struct seen s = { .all = 0 };

	for (uint64_t bucket = 0; bucket <= m->mask; bucket++) {
		uint32_t after = 0;

		if (LINK(pb_load(&m->buckets[bucket])) & END)
			continue;
		do {
			look(m, (uint32_t)bucket, after, &s);
			for (uint32_t i = 0; i < s.nr; i++) {
				after = s.link[i];
				s.after_hash = s.hash[i];
				if (!lives(m, (uint32_t)bucket, &s, i))
					continue;
				nr++;
				if (fn(arg, m, elem(m, after)->key, is_percpu(m->attr.type) ?
				       cpu_slot_value(m, after, cpu_slot) : value_of(m, after)))
					return nr;
			}
		} while (s.more);
	}
	return nr;
}

/* Reads the value. If `take` is set, also removes the key. Returns 0 or -errno. */
static int read_or_take(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags,
			bool take)
{
	int err;

	if (take && m->attr.type != BPF_MAP_TYPE_HASH_OF_MAPS)
		return m->ops->take(m, key, value, flags);
	err = m->ops->read(m, key, value, flags);
	return err || !take ? err : m->ops->remove(m, key, NULL);
}

/* Copies all keys and values of a bucket to arrays with `room` elements. If `take` is set, also
 * removes the keys. Returns the number of elements that were copied. *err: -ENOSPC if there is no
 * room for all elements, or the error of an element that can't be read. After an error without
 * `take`, returns 0, and a later batch reads the whole bucket again. */
static uint32_t batch_bucket(struct pb_bpf_map *m, uint32_t bucket, char *keys, char *values,
			     uint32_t room, uint64_t flags, bool take, int *err)
{
	uint64_t value_size = pb_bpf_map_value_size(m);
	uint32_t after = 0, nr = 0, before;
	struct seen s = { .all = 0 };

	do {
		before = nr;
		look(m, bucket, after, &s);
		if (s.more && !take ? s.nr >= room - nr : s.nr > room - nr)
			*err = -ENOSPC;
		for (uint32_t i = 0; i < s.nr && !*err; i++) {
			char *key = keys + (uint64_t)nr * m->attr.key_size;

			after = s.link[i];
			s.after_hash = s.hash[i];
			if (!copy_key(m, bucket, &s, i, key))
				continue;
			*err = read_or_take(m, key, values + nr * value_size, flags, take);
			if (!*err)
				nr++;
			else if (*err == -ENOENT)
				*err = 0;
		}
		if (*err)
			return take ? nr : 0;
		if (take)
			after = 0;	/* the element `after` is removed: begin at the head */
	} while (s.more && (!take || nr > before));
	return nr;
}

int pb_bpf_hash_batch(struct pb_bpf_map *m, uint32_t *batch, void *keys, void *values,
		      uint32_t *count, uint64_t flags, bool take)
{
	uint64_t value_size = pb_bpf_map_value_size(m);
	uint32_t most = *count;
	int err = 0;

	*count = 0;
	for (; *batch <= m->mask; ++*batch) {
		if (LINK(pb_load(&m->buckets[*batch])) & END)
			continue;
		*count += batch_bucket(m, *batch,
				       (char *)keys + (uint64_t)*count * m->attr.key_size,
				       (char *)values + *count * value_size, most - *count, flags,
				       take, &err);
		if (err)
			return err == -ENOSPC && *count ? 0 : err;
	}
	return -ENOENT;
}
