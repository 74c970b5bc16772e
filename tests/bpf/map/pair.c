/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes a map of this kernel and our map with the same attributes (pair.h). For a map of maps, also
 * makes inner maps. Our map finds its inner maps through `struct pb_bpf_objects`.
 */
#include <linux/btf.h>
#include <stdarg.h>
#include <stdio.h>

#include "pair.h"

uint64_t pair_failures, pair_checks;

static void fault(const struct pair *p, const char *format, ...)
{
	const struct pb_bpf_map_attr *a = &p->spec.attr;
	va_list ap;

	if (pair_failures++ > 20)
		return;
	printf("FAIL type %u key %u value %u max %u flags %#x seed %#llx %s: ", a->type,
	       a->key_size, a->value_size, a->max_entries, a->flags, (unsigned long long)p->seed,
	       p->op);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	puts("");
}

void pair_same(struct pair *p, long kernel, long ours)
{
	pair_checks++;
	if (kernel != ours)
		fault(p, "kernel %ld, ours %ld", kernel, ours);
}

void pair_same_bytes(struct pair *p, const void *kernel, const void *ours, size_t n)
{
	pair_checks++;
	if (memcmp(kernel, ours, n)) {
		fault(p, "contents differ");
		for (size_t i = 0; pair_failures < 4 && i < n; i++)
			if (((const uint8_t *)kernel)[i] != ((const uint8_t *)ours)[i])
				printf("     byte %zu: kernel %02x, ours %02x\n", i,
				       ((const uint8_t *)kernel)[i], ((const uint8_t *)ours)[i]);
	}
}

/* Makes BTF for keys and values of a map. The key is an int, the value is struct { int a; struct
 * bpf_spin_lock l; int b, c; }. */
static int lock_types(void)
{
	static const char names[] = "\0int\0bpf_spin_lock\0val\0v\0a\0l\0b\0c";
	enum { INT = 1, LOCK = 5, VAL = 19, V = 23, A = 25, L = 27, B = 29, C = 31 };
	static const struct {
		struct btf_header h;
		uint32_t types[4 + 3 + 3 + 3 + 4 * 3];
		char names[sizeof(names)];
	} btf = {
		.h = { BTF_MAGIC, BTF_VERSION, 0, sizeof(struct btf_header), 0, sizeof(btf.types),
		       sizeof(btf.types), sizeof(names) },
		.types = {
			INT, BTF_KIND_INT << 24, 4, BTF_INT_SIGNED << 24 | 32,
			LOCK, BTF_KIND_STRUCT << 24 | 1, 4, VAL, 1, 0,
			V, BTF_KIND_STRUCT << 24 | 4, 16, A, 1, 0, L, 2, 32, B, 1, 64, C, 1, 96,
		},
		.names = "\0int\0bpf_spin_lock\0val\0v\0a\0l\0b\0c",
	};
	static int fd;
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	a.btf = (uintptr_t)&btf;
	a.btf_size = sizeof(btf.h) + sizeof(btf.types) + sizeof(names);
	if (!fd)
		fd = (int)kernel_bpf(BPF_BTF_LOAD, &a);
	return fd;
}

static int kernel_create(const struct pb_bpf_map_spec *s, int inner)
{
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	if (s->types.spin_lock_off >= 0) {
		a.btf_fd = (uint32_t)lock_types();
		a.btf_key_type_id = 1;
		a.btf_value_type_id = 3;
	}
	a.map_type = s->attr.type;
	a.key_size = s->attr.key_size;
	a.value_size = s->attr.value_size;
	a.max_entries = s->attr.max_entries;
	a.map_flags = s->attr.flags;
	if (inner >= 0)
		a.inner_map_fd = (uint32_t)inner;
	return (int)kernel_ret(kernel_bpf(BPF_MAP_CREATE, &a));
}

long pair_kernel_elem(int cmd, int fd, const void *key, void *value, uint64_t flags)
{
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	a.map_fd = (uint32_t)fd;
	a.key = (uintptr_t)key;
	a.value = (uintptr_t)value;
	a.flags = flags;
	return kernel_ret(kernel_bpf(cmd, &a));
}

bool pair_is(const struct pair *p, uint32_t type)
{
	return p->spec.attr.type == type;
}

bool pair_is_hash(const struct pair *p)
{
	return pair_is(p, BPF_MAP_TYPE_HASH) || pair_is(p, BPF_MAP_TYPE_LRU_HASH) ||
	       pair_is(p, BPF_MAP_TYPE_PERCPU_HASH) || pair_is(p, BPF_MAP_TYPE_LRU_PERCPU_HASH) ||
	       pair_is(p, BPF_MAP_TYPE_HASH_OF_MAPS);
}

bool pair_of_maps(const struct pair *p)
{
	return pair_is(p, BPF_MAP_TYPE_ARRAY_OF_MAPS) || pair_is(p, BPF_MAP_TYPE_HASH_OF_MAPS);
}

/* Returns the index of the inner map with this id. An inner map has different ids in the kernel and
 * in Patchbay. */
static uint32_t number_of_id(const struct pair *p, uint32_t id)
{
	for (uint32_t i = 0; i < NR_INNER; i++)
		if (id == p->inner_id[i] || id == 1000000 + i)
			return i;
	return UINT32_MAX;
}

void pair_ids_to_numbers(const struct pair *p, void *value)
{
	uint32_t id;

	if (!pair_of_maps(p))
		return;
	memcpy(&id, value, 4);
	id = number_of_id(p, id);
	memcpy(value, &id, 4);
}

static void *object_find(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
	struct pair *p = o->arg;

	return kind == PB_BPF_OBJECT_MAP && id >= 1000000 && id < 1000000 + NR_INNER ?
	       &p->inner[id - 1000000] : NULL;
}

static int64_t object_get(const struct pb_bpf_objects *o, uint32_t kind, uint32_t handle)
{
	return kind == PB_BPF_OBJECT_MAP && handle < NR_INNER ? 1000000 + (int64_t)handle : -EBADF;
}

static void object_put(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
}

static uint32_t kernel_map_id(int fd)
{
	struct bpf_map_info info = { 0 };
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	a.info.bpf_fd = (uint32_t)fd;
	a.info.info_len = sizeof(info);
	a.info.info = (uintptr_t)&info;
	return kernel_bpf(BPF_OBJ_GET_INFO_BY_FD, &a) ? 0 : info.id;
}

/* Makes two inner maps that fit the outer map, and an inner map that doesn't fit. */
static void make_inner(struct pair *p)
{
	for (uint32_t i = 0; i < NR_INNER; i++) {
		struct pb_bpf_map_spec s = { .attr = { BPF_MAP_TYPE_ARRAY, 4, 8, i < 2 ? 4 : 5, 0 },
			.cpu_slots = 1, .types = { .spin_lock_off = -1, .timer_off = -1 } };

		p->inner_fd[i] = kernel_create(&s, -1);
		p->inner_id[i] = kernel_map_id(p->inner_fd[i]);
		if (pb_bpf_map_create(&p->inner[i], &s))
			fault(p, "no inner map");
		if (!i)
			p->spec.inner = s.attr;
	}
	p->objects = (struct pb_bpf_objects){ object_find, object_get, object_put, p };
}

bool pair_make(struct pair *p)
{
	int ours;

	p->op = "create";
	if (pair_of_maps(p))
		make_inner(p);
	p->fd = kernel_create(&p->spec, pair_of_maps(p) ? p->inner_fd[0] : -1);
	/* if maps of this type can't have a lock, the error is another one in Linux 6.1 */
	if (p->fd == -PB_BPF_ENOTSUPP && p->spec.types.spin_lock_off >= 0)
		p->fd = -EOPNOTSUPP;
	ours = pb_bpf_map_create(&p->ours, &p->spec);
	pair_same(p, p->fd < 0 ? p->fd : 0, ours);
	if (p->fd >= 0 && !ours) {
		p->value_size = pb_bpf_map_value_size(&p->ours);
		p->ours.objects = pair_of_maps(p) ? &p->objects : NULL;
		return true;
	}
	if (p->fd >= 0)
		close(p->fd);
	if (!ours)
		pb_bpf_map_close(&p->ours);
	return false;
}

void pair_unmake(struct pair *p, bool made)
{
	if (made) {
		close(p->fd);
		pb_bpf_map_close(&p->ours);
	}
	for (uint32_t i = 0; pair_of_maps(p) && i < NR_INNER; i++) {
		close(p->inner_fd[i]);
		pb_bpf_map_close(&p->inner[i]);
	}
}
