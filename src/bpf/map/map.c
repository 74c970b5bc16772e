/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of map types. Functions that format and open blocks. */
#include "bpf/map/map_priv.h"

static const struct pb_bpf_map_ops *const types[] = {
	[BPF_MAP_TYPE_HASH] = &pb_bpf_hash_ops,
	[BPF_MAP_TYPE_ARRAY] = &pb_bpf_array_ops,
	[BPF_MAP_TYPE_PERCPU_ARRAY] = &pb_bpf_percpu_array_ops,
	[BPF_MAP_TYPE_PROG_ARRAY] = &pb_bpf_prog_array_ops,
	[BPF_MAP_TYPE_PERF_EVENT_ARRAY] = &pb_bpf_object_array_ops,
	[BPF_MAP_TYPE_CGROUP_ARRAY] = &pb_bpf_object_array_ops,
	[BPF_MAP_TYPE_ARRAY_OF_MAPS] = &pb_bpf_object_array_ops,
	[BPF_MAP_TYPE_PERCPU_HASH] = &pb_bpf_percpu_hash_ops,
	[BPF_MAP_TYPE_LRU_HASH] = &pb_bpf_hash_ops,
	[BPF_MAP_TYPE_LRU_PERCPU_HASH] = &pb_bpf_percpu_hash_ops,
	[BPF_MAP_TYPE_HASH_OF_MAPS] = &pb_bpf_hash_of_maps_ops,
	[BPF_MAP_TYPE_LPM_TRIE] = &pb_bpf_lpm_ops,
	[BPF_MAP_TYPE_QUEUE] = &pb_bpf_queue_ops,
	[BPF_MAP_TYPE_STACK] = &pb_bpf_queue_ops,
	[BPF_MAP_TYPE_STACK_TRACE] = &pb_bpf_stack_trace_ops,
	[BPF_MAP_TYPE_RINGBUF] = &pb_bpf_ringbuf_ops,
};

const struct pb_bpf_map_ops *pb_bpf_map_ops_of(uint32_t type)
{
	return type < pb_array_size(types) ? types[type] : NULL;
}

static bool percpu(uint32_t type)
{
	return type == BPF_MAP_TYPE_PERCPU_HASH || type == BPF_MAP_TYPE_PERCPU_ARRAY ||
	       type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

static bool of_maps(uint32_t type)
{
	return type == BPF_MAP_TYPE_ARRAY_OF_MAPS || type == BPF_MAP_TYPE_HASH_OF_MAPS;
}

static bool field_fits(int32_t off, uint32_t size, uint32_t align, uint32_t value_size)
{
	return off == -1 || (off >= 0 && !((uint32_t)off % align) && size <= value_size &&
			     (uint32_t)off <= value_size - size);
}

static bool types_fit(const struct pb_bpf_map_types *t, uint32_t value_size)
{
	if (!field_fits(t->spin_lock_off, sizeof(struct bpf_spin_lock), 4, value_size) ||
	    !field_fits(t->timer_off, sizeof(struct bpf_timer), 8, value_size) ||
	    t->nr_kptrs > PB_BPF_MAX_KPTRS)
		return false;
	for (uint32_t i = 0; i < t->nr_kptrs; i++)
		if (t->kptrs[i].off > INT32_MAX ||
		    !field_fits((int32_t)t->kptrs[i].off, 8, 8, value_size))
			return false;
	return true;
}

#define TYPE(name)	(1ull << BPF_MAP_TYPE_##name)

/* Returns whether maps of this type may have the special fields. These are the types of Linux 6.12
 * that Patchbay supports. In some of these types, Linux 6.1 knows no kernel pointers. */
static bool type_has_fields(uint32_t type, const struct pb_bpf_map_types *t)
{
	const uint64_t locks = TYPE(HASH) | TYPE(ARRAY), timers = locks | TYPE(LRU_HASH),
		kptrs = timers | TYPE(PERCPU_ARRAY) | TYPE(PERCPU_HASH) | TYPE(LRU_PERCPU_HASH);
	uint64_t bit = 1ull << type;

	return (t->spin_lock_off < 0 || bit & locks) && (t->timer_off < 0 || bit & timers) &&
	       (!t->nr_kptrs || bit & kptrs);
}

/* Checks the type and the flags of a map whose values have special fields, as the kernel's
 * map_check_btf() does. Programs must be able to write a lock or a timer, and to read and write a
 * kernel pointer. */
static int fields_check(const struct pb_bpf_map_spec *s)
{
	const struct pb_bpf_map_types *t = &s->types;

	if (t->spin_lock_off < 0 && t->timer_off < 0 && !t->nr_kptrs)
		return 0;
	if (s->attr.flags & BPF_F_RDONLY_PROG || (s->attr.flags & BPF_F_WRONLY_PROG && t->nr_kptrs))
		return -EACCES;
	return type_has_fields(s->attr.type, t) ? 0 : -EOPNOTSUPP;
}

/* Checks the rules for maps of all types. Each type's size() checks the rules for its own type. */
static int spec_check(const struct pb_bpf_map_spec *s)
{
	if (!pb_bpf_map_ops_of(s->attr.type))
		return -EINVAL;
	if (!s->cpu_slots || s->cpu_slots > PB_BPF_MAX_CPU_SLOTS ||
	    !types_fit(&s->types, s->attr.value_size))
		return -EINVAL;
	if ((s->attr.flags & (BPF_F_RDONLY | BPF_F_WRONLY)) == (BPF_F_RDONLY | BPF_F_WRONLY))
		return -EINVAL;
	if (of_maps(s->attr.type) && (!pb_bpf_map_ops_of(s->inner.type) || of_maps(s->inner.type)))
		return s->inner.type ? -EINVAL : -EBADF;
	return fields_check(s);
}

uint64_t pb_bpf_map_size(const struct pb_bpf_map_spec *spec, int *err)
{
	*err = spec_check(spec);
	return *err ? 0 : pb_bpf_map_ops_of(spec->attr.type)->size(spec, err);
}

uint64_t pb_bpf_map_written(const struct pb_bpf_map_spec *spec)
{
	const struct pb_bpf_map_ops *ops = pb_bpf_map_ops_of(spec->attr.type);
	int err;

	return pb_bpf_map_size(spec, &err) && ops->written ? ops->written(spec) : 0;
}

uint64_t pb_bpf_map_span(const struct pb_bpf_map_spec *spec, uint64_t size)
{
	return size + (spec->attr.type == BPF_MAP_TYPE_RINGBUF ? spec->attr.max_entries : 0);
}

int pb_bpf_map_format(void *block, const struct pb_bpf_map_spec *spec, uint32_t id)
{
	struct pb_bpf_map_head *head = block;
	int err;
	uint64_t size = pb_bpf_map_size(spec, &err);

	if (!size)
		return err;
	head->size = size;
	head->spec = *spec;
	head->spec.name[BPF_OBJ_NAME_LEN - 1] = 0;
	for (uint32_t i = 0; i < PB_BPF_MAX_KPTRS; i++)
		head->spec.types.kptrs[i].name = NULL;
	head->version = PB_BPF_MAP_VERSION;
	head->id = id;
	pb_bpf_map_ops_of(spec->attr.type)->format(block);
	__atomic_store_n(&head->magic, PB_BPF_MAP_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

/* Copies a block's spec. False: the block is no map, or its map needs more than `size` bytes. */
static bool spec_of(const void *block, uint64_t size, struct pb_bpf_map_spec *spec)
{
	const struct pb_bpf_map_head *head = block;
	uint64_t wanted;
	int err;

	if (size < sizeof(*head) ||
	    __atomic_load_n(&head->magic, __ATOMIC_ACQUIRE) != PB_BPF_MAP_MAGIC ||
	    head->version != PB_BPF_MAP_VERSION)
		return false;
	*spec = head->spec;
	pb_barrier();		/* the checks must read the copy, because other processes may
				 * change the block */
	spec->name[BPF_OBJ_NAME_LEN - 1] = 0;
	for (uint32_t i = 0; i < PB_BPF_MAX_KPTRS; i++)
		spec->types.kptrs[i].name = "";
	wanted = pb_bpf_map_size(spec, &err);
	return wanted && wanted <= size;
}

uint64_t pb_bpf_map_block_size(const void *block, uint64_t size, uint64_t *span)
{
	struct pb_bpf_map_spec spec;
	int err;

	if (!spec_of(block, size, &spec))
		return 0;
	size = pb_bpf_map_size(&spec, &err);
	*span = pb_bpf_map_span(&spec, size);
	return size;
}

int pb_bpf_map_open(struct pb_bpf_map *map, void *block, uint64_t size, uint64_t span)
{
	struct pb_bpf_map_spec spec;
	int err;

	if (!spec_of(block, size, &spec) || pb_bpf_map_size(&spec, &err) != size ||
	    pb_bpf_map_span(&spec, size) != span)
		return -EINVAL;
	memset(map, 0, sizeof(*map));
	map->ops = pb_bpf_map_ops_of(spec.attr.type);
	map->head = block;
	map->attr = spec.attr;
	map->inner = spec.inner;
	map->types = spec.types;
	map->special = spec.types.spin_lock_off >= 0 || spec.types.timer_off >= 0 ||
		       spec.types.nr_kptrs;
	memcpy(map->name, spec.name, sizeof(map->name));
	map->id = map->head->id;
	map->frozen = map->head->frozen;
	map->cpu_slots = percpu(spec.attr.type) ? spec.cpu_slots : 1;
	map->value_room = pb_align_up(spec.attr.value_size, 8u);
	map->size = size;
	map->mapped = span;
	map->access = (spec.attr.flags & BPF_F_WRONLY ? 0 : PB_BPF_MAP_READ) |
		      (spec.attr.flags & BPF_F_RDONLY ? 0 : PB_BPF_MAP_WRITE);
	map->fd = -1;
	return map->ops->open(map) ? 0 : -EINVAL;
}
