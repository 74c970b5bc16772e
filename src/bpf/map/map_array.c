/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * BPF_MAP_TYPE_ARRAY and PERCPU_ARRAY.
 *
 *   head | padding to the end of a page | values (per-CPU: of slot 0, of slot 1, ...)
 *
 * The values begin at a page boundary, so that another process can map them without the head.
 */
#include "bpf/map/map_priv.h"

#define PAGE	4096ull

static bool is_percpu(uint32_t type)
{
	return type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

static int check(const struct pb_bpf_map_attr *a)
{
	uint32_t known = BPF_F_MMAPABLE | BPF_F_INNER_MAP | PB_BPF_ACCESS_FLAGS;

	if (!a->max_entries || a->key_size != 4 || !a->value_size || a->flags & ~known ||
	    !pb_bpf_access_ok(a->flags) ||
	    (is_percpu(a->type) && a->flags & (BPF_F_MMAPABLE | BPF_F_INNER_MAP)))
		return -EINVAL;
	if (a->value_size > INT32_MAX ||
	    (is_percpu(a->type) && pb_align_up(a->value_size, 8u) > 32768))
		return -E2BIG;
	return 0;
}

static uint64_t cpu_slot_size(const struct pb_bpf_map_attr *a)
{
	return pb_align_up((uint64_t)a->max_entries * pb_align_up((uint64_t)a->value_size,
								  (uint64_t)8), (uint64_t)64);
}

static uint64_t array_size(const struct pb_bpf_map_spec *s, int *err)
{
	uint64_t values = cpu_slot_size(&s->attr);

	*err = check(&s->attr);
	if (!*err && values > 1ull << 46)
		*err = -ENOMEM;
	return *err ? 0 : PAGE + pb_align_up(values * (is_percpu(s->attr.type) ? s->cpu_slots : 1),
					     PAGE);
}

static void array_format(void *block)
{
}

static bool array_open(struct pb_bpf_map *m)
{
	m->elems = (char *)m->head + PAGE;
	m->elem_size = m->value_room;
	m->nr_elems = m->attr.max_entries;
	m->cpu_slot_size = cpu_slot_size(&m->attr);
	return true;
}

static inline char *at(const struct pb_bpf_map *m, const void *key)
{
	uint32_t i;

	__builtin_memcpy(&i, key, 4);
	return i < m->attr.max_entries ? m->elems + i * m->elem_size : NULL;
}

static void *array_lookup(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	return at(m, key);
}

static int array_update(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags,
			struct pb_bpf_run *run)
{
	char *to = at(m, key);

	if ((flags & ~(uint64_t)BPF_F_LOCK) > BPF_EXIST)
		return -EINVAL;
	if (!to)
		return -E2BIG;
	if (flags & BPF_NOEXIST)
		return -EEXIST;
	if (flags & BPF_F_LOCK)
		return m->types.spin_lock_off < 0 ? -EINVAL :
		pb_bpf_value_in_locked(m, to, value, run);
	pb_bpf_value_copy(m, to, value);
	return 0;
}

int pb_bpf_array_next_key(struct pb_bpf_map *m, const void *key, void *next)
{
	uint32_t i = UINT32_MAX;

	if (key)
		__builtin_memcpy(&i, key, 4);
	if (i < m->attr.max_entries && i == m->attr.max_entries - 1)
		return -ENOENT;
	i = i < m->attr.max_entries ? i + 1 : 0;
	__builtin_memcpy(next, &i, 4);
	return 0;
}

static int64_t array_each(struct pb_bpf_map *m, pb_bpf_map_fn *fn, void *arg,
			  struct pb_bpf_run *run)
{
	char *values = m->elems + (is_percpu(m->attr.type) ? pb_bpf_map_cpu_slot(m, run) *
				   m->cpu_slot_size : 0);

	for (uint32_t i = 0; i < m->attr.max_entries; i++) {
		uint32_t key = i;

		if (fn(arg, m, &key, values + i * m->elem_size))
			return (int64_t)i + 1;
	}
	return m->attr.max_entries;
}

static void *array_direct(struct pb_bpf_map *m, uint32_t off)
{
	return off < m->attr.value_size ? m->elems + off : NULL;
}

/* ---- per CPU ------------------------------------------------------------------ */

static void *percpu_lookup(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	char *value = at(m, key);

	return value ? value + pb_bpf_map_cpu_slot(m, run) * m->cpu_slot_size : NULL;
}

static int percpu_check(const char *to, uint64_t flags)
{
	if (flags > BPF_EXIST)
		return -EINVAL;
	return !to ? -E2BIG : flags == BPF_NOEXIST ? -EEXIST : 0;
}

static int percpu_update(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags,
			 struct pb_bpf_run *run)
{
	char *to = at(m, key);
	int err = percpu_check(to, flags);

	if (!err)
		pb_bpf_value_copy(m, to + pb_bpf_map_cpu_slot(m, run) * m->cpu_slot_size, value);
	return err;
}

static int percpu_write(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags)
{
	char *to = at(m, key);
	int err = percpu_check(to, flags);

	if (!err)
		pb_bpf_cpu_slots_in(m, to, value);
	return err;
}

static int percpu_read(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags)
{
	char *from = at(m, key);

	if (!from)
		return -ENOENT;
	pb_bpf_cpu_slots_out(m, value, from);
	return 0;
}

#define ARRAY_OPS \
	.size = array_size, .format = array_format, .open = array_open, \
		.remove = pb_bpf_no_remove, \
	.next_key = pb_bpf_array_next_key, .each = array_each, PB_BPF_NO_QUEUE, \
		.take = pb_bpf_no_take

const struct pb_bpf_map_ops pb_bpf_array_ops = {
	ARRAY_OPS, .lookup = array_lookup, .update = array_update, .read = pb_bpf_read_value,
	.write = pb_bpf_write_value, .direct = array_direct,
};

const struct pb_bpf_map_ops pb_bpf_percpu_array_ops = {
	ARRAY_OPS, .lookup = percpu_lookup, .update = percpu_update, .read = percpu_read,
	.write = percpu_write,
};
