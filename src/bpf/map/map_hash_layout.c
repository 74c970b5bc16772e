/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The layout of a hash's block (map_hash.h). Computes the size of the block, formats the block and
 * opens it. */
#include "bpf/map/map_hash.h"

#define MANY_BUCKETS	(1u << 16)

struct layout {
	uint32_t key_room, nr_buckets, nr_elems, max;
	uint64_t elem_size, elems, values, cpu_slot_size, size;
};

static int check(const struct pb_bpf_map_attr *a)
{
	bool lru = a->type == BPF_MAP_TYPE_LRU_HASH || a->type == BPF_MAP_TYPE_LRU_PERCPU_HASH;

	if (a->flags & ~(uint32_t)(BPF_F_NO_PREALLOC | BPF_F_NO_COMMON_LRU | BPF_F_ZERO_SEED |
				   PB_BPF_ACCESS_FLAGS) ||
	    !pb_bpf_access_ok(a->flags) || (!lru && a->flags & BPF_F_NO_COMMON_LRU))
		return -EINVAL;
	if (lru && a->flags & BPF_F_NO_PREALLOC)
		return -PB_BPF_ENOTSUPP;
	if (!a->max_entries || !a->key_size || !a->value_size)
		return -EINVAL;
	if ((uint64_t)a->key_size + a->value_size >= PB_BPF_MAX_VALUE - 48 ||
	    (is_percpu(a->type) && pb_align_up(a->value_size, 8u) > 32768) ||
	    a->max_entries > 1u << 30)
		return -E2BIG;
	return 0;
}

static int lay_out(const struct pb_bpf_map_attr *a, uint32_t cpu_slots, struct layout *l)
{
	uint64_t buckets = 1;
	int err = check(a);

	if (err)
		return err;
	/* a small map has spare buckets, so that threads with different keys seldom use the same
	 * cache line of buckets */
	while (buckets < a->max_entries ||
	       (buckets < 4ull * a->max_entries && buckets < MANY_BUCKETS))
		buckets *= 2;
	l->key_room = pb_align_up(a->key_size, 8u);
	l->elem_size = offsetof(struct elem, key) + l->key_room;
	if (!is_percpu(a->type) && a->value_size > SMALL)
		l->elem_size += pb_align_up(a->value_size, 8u);
	/* each element has its own cache lines, so that processors don't contend if they use
	 * different elements */
	l->elem_size = pb_align_up(l->elem_size, (uint64_t)64);
	l->nr_buckets = (uint32_t)buckets;
	l->nr_elems = a->max_entries + SPARE;
	l->elems = pb_align_up(sizeof(struct pb_bpf_map_head) + sizeof(struct hash_top) +
			       buckets * 8, (uint64_t)128);
	l->values = pb_align_up(l->elems + l->nr_elems * l->elem_size, (uint64_t)64);
	l->cpu_slot_size = is_percpu(a->type) ?
		       pb_align_up((uint64_t)l->nr_elems * pb_align_up(a->value_size, 8u),
				   (uint64_t)64) : 0;
	l->size = l->values + l->cpu_slot_size * cpu_slots;
	return 0;
}

uint64_t pb_bpf_hash_size(const struct pb_bpf_map_spec *s, int *err)
{
	struct layout l;

	*err = lay_out(&s->attr, s->cpu_slots, &l);
	return *err ? 0 : l.size;
}

void pb_bpf_hash_format(void *block)
{
	struct pb_bpf_map_head *head = block;
	uint64_t *buckets = (uint64_t *)((struct hash_top *)(head + 1) + 1);
	struct layout l;

	if (lay_out(&head->spec.attr, head->spec.cpu_slots, &l))
		return;
	for (uint32_t b = 0; b < l.nr_buckets; b++)
		buckets[b] = END | b;
	((struct hash_top *)(head + 1))->shard[0].room = head->spec.attr.max_entries;
}

uint64_t pb_bpf_hash_written(const struct pb_bpf_map_spec *s)
{
	struct layout l;

	return lay_out(&s->attr, s->cpu_slots, &l) ? 0 : l.nr_buckets * 8ull;
}

bool pb_bpf_hash_open(struct pb_bpf_map *m)
{
	struct layout l;

	if (lay_out(&m->attr, m->cpu_slots, &l))
		return false;
	m->buckets = (uint64_t *)(hash_top(m) + 1);
	m->elems = (char *)m->head + l.elems;
	m->values = (char *)m->head + l.values;
	m->cpu_slot_size = l.cpu_slot_size;
	m->elem_size = l.elem_size;
	m->nr_elems = l.nr_elems;
	m->mask = l.nr_buckets - 1;
	m->key_room = l.key_room;
	return true;
}
