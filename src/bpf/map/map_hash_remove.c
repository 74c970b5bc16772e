/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Removes keys from a hash. lookup_and_delete also takes the value. No update may be lost: either
 * the removal takes the updated value, or the update finds the key removed and adds it again. How
 * this is ensured depends on the kind of value:
 *
 *   small values         one cmpxchg of {next, small} marks the element, and checks the value
 *   per-CPU values       are copied after the mark. The copy is announced like a change of the
 *                        value (map_hash.h), so the element isn't reused meanwhile. An update in
 *                        place looks for the mark after it has changed the value, and searches
 *                        again if it finds one
 *   values that are      are copied before the mark. An update after the copy replaces the element,
 *   replaced             so the mark fails
 *   with BPF_F_LOCK      are copied before the mark, under the lock. As in Linux, an update under
 *                        the lock between copy and mark is lost
 */
#include "bpf/map/map_hash.h"

/* Marks the element, and stores its value in *out. Returns false if the element is deleted, or if
 * its tag has changed since the search. */
static bool take_small(struct pb_bpf_map *m, struct pb_bpf_found f, void *out)
{
	struct elem *e = elem(m, f.link);
	uint64_t next = f.word, was = __atomic_load_n(&e->small, __ATOMIC_RELAXED);

	while (!STATE(next) && (next & TAGS) == f.tag)
		if (pb_replace16(&e->next, &next, &was, next | MARK, was)) {
			pb_bpf_value_out(m, out, &was);
			return true;
		}
	return false;
}

static bool take_per_cpu(struct pb_bpf_map *m, struct pb_bpf_found f, void *out)
{
	uint64_t *word = pb_bpf_hash_begin_change(m, f.link, NULL);
	bool done = pb_bpf_hash_mark(m, f.link, f.tag);

	if (done)
		pb_bpf_cpu_slots_out(m, out, cpu_slot_value(m, f.link, 0));
	pb_bpf_hash_end_change(m, f.link, word, NULL);
	return done;
}

static bool is_small(const struct pb_bpf_map *m)
{
	return m->attr.value_size <= SMALL && !m->special;
}

/* Removes the element. If out isn't NULL, *out receives the value. Returns 0 or -errno. Returns 1
 * if the element was deleted or changed meanwhile. */
static int take_elem(struct pb_bpf_map *m, struct pb_bpf_found f, void *out, uint64_t flags)
{
	int err;

	if (out && is_percpu(m->attr.type))
		return !take_per_cpu(m, f, out);
	if (out && is_small(m))
		return !take_small(m, f, out);
	if (out && flags & BPF_F_LOCK) {
		err = pb_bpf_value_out_locked(m, out, value_of(m, f.link));
		if (err)
			return err;
	} else if (out) {
		pb_bpf_value_out(m, out, value_of(m, f.link));
	}
	return !pb_bpf_hash_mark(m, f.link, f.tag);
}

static int take_from(struct pb_bpf_map *m, const void *key, void *out, uint64_t flags,
		     uint32_t shard)
{
	uint32_t hash = pb_bpf_hash_of(m, key);

	for (int walks = 0; walks < MAX_WALKS; walks++) {
		struct pb_bpf_found f = pb_bpf_hash_find(m, hash, key);
		int err;

		if (f.lost)
			break;
		if (!f.link)
			return -ENOENT;
		err = take_elem(m, f, out, flags);
		if (err < 0)
			return err;
		if (err)
			continue;
		pb_bpf_hash_sweep(m, hash & m->mask, shard);
		return 0;
	}
	return -EBUSY;
}

int pb_bpf_hash_remove(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	return take_from(m, key, NULL, 0, shard_of(m, run));
}

int pb_bpf_hash_take(struct pb_bpf_map *m, const void *key, void *out, uint64_t flags)
{
	return take_from(m, key, out, flags, shard_of(m, NULL));
}
