/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps of objects: prog_array, perf_event_array, cgroup_array, array_of_maps and hash_of_maps.
 *
 *   head | ids u32[]			(a hash_of_maps is a hash of ids)
 *
 * The block holds ids of objects; an id of 0 means no object. struct pb_bpf_objects finds this
 * process's object by its id. A process that puts an id into a map takes a reference to the object.
 * A process that removes an id drops a reference to the object. If a process doesn't have the
 * object, its lookup finds nothing, as if the entry were empty.
 */
#include "bpf/map/map_hash.h"

struct kind {
	uint32_t type, kind;
	bool readable;		/* calls from outside can look up ids */
};

static const struct kind kinds[] = {
	{ BPF_MAP_TYPE_PROG_ARRAY, PB_BPF_OBJECT_PROG, true },
	{ BPF_MAP_TYPE_PERF_EVENT_ARRAY, PB_BPF_OBJECT_EVENT, false },
	{ BPF_MAP_TYPE_CGROUP_ARRAY, PB_BPF_OBJECT_CGROUP, false },
	{ BPF_MAP_TYPE_ARRAY_OF_MAPS, PB_BPF_OBJECT_MAP, true },
	{ BPF_MAP_TYPE_HASH_OF_MAPS, PB_BPF_OBJECT_MAP, true },
};

static const struct kind *kind_of(const struct pb_bpf_map *m)
{
	for (size_t i = 0; i < pb_array_size(kinds); i++)
		if (kinds[i].type == m->attr.type)
			return &kinds[i];
	return &kinds[0];
}

/* Returns whether `inner` may be put into `outer`, a map of maps. */
static bool fits(const struct pb_bpf_map *outer, const struct pb_bpf_map *inner)
{
	const struct pb_bpf_map_attr *want = &outer->inner, *is = &inner->attr;

	/* special values are refused, because the verifier treats the values of inner maps as plain
	 * bytes (describe_inner()) */
	if (inner->special || want->type != is->type || want->key_size != is->key_size ||
	    want->value_size != is->value_size || want->flags != is->flags)
		return false;
	return is->type != BPF_MAP_TYPE_ARRAY || is->flags & BPF_F_INNER_MAP ||
	       want->max_entries == is->max_entries;
}

static int64_t get(const struct pb_bpf_map *m, const void *value)
{
	const struct pb_bpf_objects *o = m->objects;
	uint32_t kind = kind_of(m)->kind, handle;
	const struct pb_bpf_map *inner;
	int64_t id;

	__builtin_memcpy(&handle, value, 4);
	id = o ? o->get(o, kind, handle) : -EBADF;
	if (id <= 0)
		return id ? id : -EBADF;
	if (kind != PB_BPF_OBJECT_MAP)
		return id;
	inner = o->find(o, kind, (uint32_t)id);
	if (inner && fits(m, inner))
		return id;
	o->put(o, kind, (uint32_t)id);
	return -EINVAL;
}

static void put(const struct pb_bpf_map *m, uint32_t id)
{
	if (id && m->objects)
		m->objects->put(m->objects, kind_of(m)->kind, id);
}

/* Returns the object with this id. A map that doesn't fit isn't found, because another process may
 * have written any id, and the verifier has checked the program for maps like m->inner only. */
static void *find(const struct pb_bpf_map *m, uint32_t id)
{
	uint32_t kind = kind_of(m)->kind;
	void *object = id && m->objects ? m->objects->find(m->objects, kind, id) : NULL;

	return object && kind == PB_BPF_OBJECT_MAP && !fits(m, object) ? NULL : object;
}

/* ---- arrays --------------------------------------------------------------------- */

static uint64_t array_size(const struct pb_bpf_map_spec *s, int *err)
{
	const struct pb_bpf_map_attr *a = &s->attr;
	uint32_t known = BPF_F_RDONLY | BPF_F_WRONLY |
			 (a->type == BPF_MAP_TYPE_PERF_EVENT_ARRAY ? BPF_F_PRESERVE_ELEMS : 0);

	*err = !a->max_entries || a->key_size != 4 || a->value_size != 4 ||
	       a->flags & ~known ? -EINVAL : 0;
	return *err ? 0 : pb_align_up(sizeof(struct pb_bpf_map_head) + 4ull * a->max_entries,
				      64ull);
}

static void array_format(void *block)
{
}

static bool array_open(struct pb_bpf_map *m)
{
	m->elems = (char *)(m->head + 1);
	m->elem_size = 4;
	m->nr_elems = m->attr.max_entries;
	return true;
}

static uint32_t *slot(const struct pb_bpf_map *m, const void *key)
{
	uint32_t i;

	__builtin_memcpy(&i, key, 4);
	return i < m->attr.max_entries ? (uint32_t *)m->elems + i : NULL;
}

static void *array_lookup(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	uint32_t *id = slot(m, key);

	return id ? find(m, pb_load32(id)) : NULL;
}

static const struct pb_bpf_prog *array_prog(struct pb_bpf_map *m, uint32_t index)
{
	return array_lookup(m, &index, NULL);
}

static int array_read(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags)
{
	uint32_t *id = slot(m, key), now = id ? pb_load32(id) : 0;

	if (!kind_of(m)->readable)
		return -PB_BPF_ENOTSUPP;
	if (!now)
		return -ENOENT;
	__builtin_memcpy(value, &now, 4);
	return 0;
}

static int array_write(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags)
{
	uint32_t *at = slot(m, key);
	int64_t id;

	if (flags != BPF_ANY)
		return -EINVAL;
	if (!at)
		return -E2BIG;
	id = get(m, value);
	if (id < 0)
		return (int)id;
	put(m, __atomic_exchange_n(at, (uint32_t)id, __ATOMIC_ACQ_REL));
	return 0;
}

static int array_remove(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	uint32_t *at = slot(m, key), old;

	if (!at)
		return -E2BIG;
	old = __atomic_exchange_n(at, 0, __ATOMIC_ACQ_REL);
	put(m, old);
	return old ? 0 : -ENOENT;
}

/* ---- hash_of_maps ----------------------------------------------------------------- */

static uint64_t hash_size(const struct pb_bpf_map_spec *s, int *err)
{
	if (s->attr.value_size != 4) {
		*err = -EINVAL;
		return 0;
	}
	return pb_bpf_hash_ops.size(s, err);
}

static void hash_format(void *block)
{
	pb_bpf_hash_ops.format(block);
}

static bool hash_open(struct pb_bpf_map *m)
{
	return pb_bpf_hash_ops.open(m);
}

static uint32_t hash_id(struct pb_bpf_map *m, const void *key)
{
	uint32_t *id = pb_bpf_hash_ops.lookup(m, key, NULL);

	return id ? pb_load32(id) : 0;
}

static void *hash_lookup(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	return find(m, hash_id(m, key));
}

static int hash_read(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags)
{
	uint32_t id = hash_id(m, key);

	if (!id)
		return -ENOENT;
	__builtin_memcpy(value, &id, 4);
	return 0;
}

/* Takes a lock, so that no other writer adds or removes the key between the look-up and the
 * exchange. So exactly one writer gets each id that is replaced, and drops the reference to its
 * map. */
static int hash_write(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags)
{
	int64_t id = get(m, value);
	uint32_t number = (uint32_t)id, *at, *guard = &hash_top(m)->guard;
	int err;

	if (id < 0)
		return (int)id;
	err = pb_bpf_guard_take(m, guard, NULL);
	if (err >= 0) {
		err = 0;
		at = pb_bpf_hash_ops.lookup(m, key, NULL);
		if (at && (flags == BPF_ANY || flags == BPF_EXIST))
			number = __atomic_exchange_n(at, number, __ATOMIC_ACQ_REL);
		else
			err = pb_bpf_hash_ops.update(m, key, &number, flags, NULL);
		pb_bpf_guard_give(guard, NULL);
		if (!err && !at)
			return 0;
	}
	put(m, number);
	return err;
}

static int hash_remove(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	uint32_t old = 0, *guard = &hash_top(m)->guard;
	int err = pb_bpf_guard_take(m, guard, run);

	if (err < 0)
		return err;
	err = pb_bpf_hash_ops.take(m, key, &old, 0);
	pb_bpf_guard_give(guard, run);
	put(m, old);
	return err;
}

#define ARRAY_OPS \
	.size = array_size, .format = array_format, .open = array_open, .lookup = array_lookup, \
	.update = pb_bpf_no_update, .remove = array_remove, .next_key = pb_bpf_array_next_key, \
	.each = pb_bpf_no_each, .read = array_read, .write = array_write, .take = pb_bpf_no_take, \
		PB_BPF_NO_QUEUE

const struct pb_bpf_map_ops pb_bpf_prog_array_ops = { ARRAY_OPS, .prog = array_prog };
const struct pb_bpf_map_ops pb_bpf_object_array_ops = { ARRAY_OPS };

static void hash_repair(struct pb_bpf_map *m, uint32_t dead)
{
	uint32_t *guard = &hash_top(m)->guard;

	pb_bpf_hash_repair(m, dead);
	if (pb_bpf_guard_take_over(m, guard, dead))
		pb_bpf_guard_give(guard, NULL);
}

const struct pb_bpf_map_ops pb_bpf_hash_of_maps_ops = {
	.size = hash_size, .format = hash_format, .written = pb_bpf_hash_written, .open = hash_open,
	.lookup = hash_lookup, .update = pb_bpf_no_update, .remove = hash_remove,
	.next_key = pb_bpf_hash_next_key,
	.each = pb_bpf_no_each, .read = hash_read, .write = hash_write, .take = pb_bpf_no_take,
	PB_BPF_NO_QUEUE, .repair = hash_repair,
};
