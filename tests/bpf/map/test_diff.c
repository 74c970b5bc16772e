/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Applies the same random operations to a map of this kernel and to our map. Results, errors and
 * contents must be the same.
 *
 *   test_diff [ROUNDS [SEED]]
 */
#include <linux/btf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "bpf/map/map_file.h"
#include "bpf/map/map_sys.h"
#include "kernel.h"

#define CPU_SLOTS_MOST	64
#define VALUE_MOST	64
#define KEY_MOST	32
#define MAX_MOST	24
#define VALUES		(VALUE_MOST * CPU_SLOTS_MOST)

static uint32_t cpu_slots;
static uint64_t rng, failures, checks;

static uint32_t rnd(uint32_t below)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)((rng * 0x2545f4914f6cdd1dull >> 32) % below);
}

/* ---- one pair of maps ----------------------------------------------------------- */

#define NR_INNER 3

struct pair {
	struct pb_bpf_map_spec spec;
	struct pb_bpf_map ours;
	int fd;
	uint64_t value_size;	/* size of a value for user space (per-CPU maps: of all slots) */
	const char *op;
	uint64_t seed;
	/* for maps of maps: our handle is an index into inner[], the kernel's handle is a
	 * descriptor in inner_fd[] */
	struct pb_bpf_map inner[NR_INNER];
	int inner_fd[NR_INNER];
	uint32_t inner_id[NR_INNER];
	struct pb_bpf_objects objects;
};

static void fault(const struct pair *p, const char *format, ...)
{
	const struct pb_bpf_map_attr *a = &p->spec.attr;
	va_list ap;

	if (failures++ > 20)
		return;
	printf("FAIL type %u key %u value %u max %u flags %#x seed %#llx %s: ", a->type,
	       a->key_size, a->value_size, a->max_entries, a->flags, (unsigned long long)p->seed,
	       p->op);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	puts("");
}

static void same(struct pair *p, long kernel, long ours)
{
	checks++;
	if (kernel != ours)
		fault(p, "kernel %ld, ours %ld", kernel, ours);
}

static void same_bytes(struct pair *p, const void *kernel, const void *ours, size_t n)
{
	checks++;
	if (memcmp(kernel, ours, n)) {
		fault(p, "contents differ");
		for (size_t i = 0; failures < 4 && i < n; i++)
			if (((const uint8_t *)kernel)[i] != ((const uint8_t *)ours)[i])
				printf("     byte %zu: kernel %02x, ours %02x\n", i,
				       ((const uint8_t *)kernel)[i], ((const uint8_t *)ours)[i]);
	}
}

static long ret_of(long ret)
{
	return ret < 0 ? -errno : ret;
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
	return (int)ret_of(kernel_bpf(BPF_MAP_CREATE, &a));
}

static long kernel_elem(int cmd, int fd, const void *key, void *value, uint64_t flags)
{
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	a.map_fd = (uint32_t)fd;
	a.key = (uintptr_t)key;
	a.value = (uintptr_t)value;
	a.flags = flags;
	return ret_of(kernel_bpf(cmd, &a));
}

static bool is(const struct pair *p, uint32_t type)
{
	return p->spec.attr.type == type;
}

static bool is_hash(const struct pair *p)
{
	return is(p, BPF_MAP_TYPE_HASH) || is(p, BPF_MAP_TYPE_LRU_HASH) ||
	       is(p, BPF_MAP_TYPE_PERCPU_HASH) || is(p, BPF_MAP_TYPE_LRU_PERCPU_HASH) ||
	       is(p, BPF_MAP_TYPE_HASH_OF_MAPS);
}

static bool of_maps(const struct pair *p)
{
	return is(p, BPF_MAP_TYPE_ARRAY_OF_MAPS) || is(p, BPF_MAP_TYPE_HASH_OF_MAPS);
}

/* Returns the index of an inner map by its id. An inner map has different ids in the kernel and in
 * Patchbay. */
static uint32_t number_of_id(const struct pair *p, uint32_t id)
{
	for (uint32_t i = 0; i < NR_INNER; i++)
		if (id == p->inner_id[i] || id == 1000000 + i)
			return i;
	return UINT32_MAX;
}

static void ids_to_numbers(const struct pair *p, void *value)
{
	uint32_t id;

	if (!of_maps(p))
		return;
	memcpy(&id, value, 4);
	id = number_of_id(p, id);
	memcpy(value, &id, 4);
}

/* ---- operations ------------------------------------------------------------------- */

static uint64_t some_flags(void)
{
	static const uint64_t rare[] = { BPF_F_LOCK, BPF_F_LOCK | BPF_EXIST, 3, 8, 1ull << 40 };

	return rnd(12) ? (rnd(2) ? 0 : rnd(3)) : rare[rnd(5)];
}

static void some_key(const struct pair *p, uint8_t *key)
{
	uint32_t n = p->spec.attr.key_size, max = p->spec.attr.max_entries;

	memset(key, 0, KEY_MOST);
	if (n > KEY_MOST)
		n = KEY_MOST;
	if (is(p, BPF_MAP_TYPE_LPM_TRIE) && n > 4) {
		uint32_t prefix = rnd(8) ? rnd((n - 4) * 8 + 1) : rnd((n - 4) * 8 + 12);

		memcpy(key, &prefix, 4);
		for (uint32_t i = 4; i < n; i++)
			key[i] = rnd(3) ? (uint8_t)(rnd(2) * 0x80) : (uint8_t)rnd(256);
	} else if (n) {
		key[0] = (uint8_t)(rnd(30) ? rnd((max < MAX_MOST ? max : MAX_MOST) + 2) : rnd(256));
		if (n > 4)
			key[n - 1] = (uint8_t)(key[0] * 7);
	}
}

static void some_value(const struct pair *p, uint8_t *kernel, uint8_t *ours)
{
	for (uint64_t i = 0; i < p->value_size; i++)
		kernel[i] = (uint8_t)rnd(256);
	memcpy(ours, kernel, p->value_size);
	if (of_maps(p)) {
		uint32_t i = rnd(NR_INNER + 1), k = i < NR_INNER ? (uint32_t)p->inner_fd[i] : 9999;

		memcpy(kernel, &k, 4);
		memcpy(ours, &i, 4);
	} else if (p->spec.attr.type == BPF_MAP_TYPE_PROG_ARRAY ||
		   is(p, BPF_MAP_TYPE_PERF_EVENT_ARRAY) || is(p, BPF_MAP_TYPE_CGROUP_ARRAY)) {
		memset(kernel, 0x7f, 4);
		memset(ours, 0x7f, 4);
	}
}

static void op_lookup(struct pair *p)
{
	static uint8_t k[VALUES], o[VALUES];
	uint8_t key[KEY_MOST];
	bool take = !rnd(3);
	uint64_t flags = rnd(10) ? 0 : some_flags();
	void *at = p->spec.attr.key_size || !rnd(20) ? key : NULL;
	long kernel, ours;

	some_key(p, key);
	memset(k, 0, sizeof(k));
	memset(o, 0, sizeof(o));
	p->op = take ? "lookup_and_delete" : "lookup";
	kernel = kernel_elem(take ? BPF_MAP_LOOKUP_AND_DELETE_ELEM : BPF_MAP_LOOKUP_ELEM, p->fd, at,
			     k, flags);
	ours = take ? pb_bpf_map_lookup_and_delete_elem(&p->ours, at, o, flags) :
		      pb_bpf_map_lookup_elem(&p->ours, at, o, flags);
	same(p, kernel, ours);
	if (!kernel) {
		ids_to_numbers(p, k);
		ids_to_numbers(p, o);
		same_bytes(p, k, o, p->value_size);
	}
}

static void op_update(struct pair *p)
{
	static uint8_t k[VALUES], o[VALUES];
	uint8_t key[KEY_MOST];
	uint64_t flags = some_flags();
	void *at = p->spec.attr.key_size || !rnd(20) ? key : NULL;

	some_key(p, key);
	some_value(p, k, o);
	p->op = "update";
	same(p, kernel_elem(BPF_MAP_UPDATE_ELEM, p->fd, at, k, flags),
	     pb_bpf_map_update_elem(&p->ours, at, o, flags));
}

static void op_delete(struct pair *p)
{
	uint8_t key[KEY_MOST];
	void *at = p->spec.attr.key_size ? key : NULL;

	some_key(p, key);
	p->op = "delete";
	same(p, kernel_elem(BPF_MAP_DELETE_ELEM, p->fd, at, NULL, 0),
	     pb_bpf_map_delete_elem(&p->ours, at));
}

static void op_next(struct pair *p)
{
	uint8_t key[KEY_MOST], k[KEY_MOST] = { 0 }, o[KEY_MOST] = { 0 };
	void *at = rnd(3) && p->spec.attr.key_size ? key : NULL;
	long kernel, ours;

	some_key(p, key);
	p->op = "get_next_key";
	kernel = kernel_elem(BPF_MAP_GET_NEXT_KEY, p->fd, at, k, 0);
	ours = pb_bpf_map_get_next_key(&p->ours, at, o);
	if (is_hash(p) && at)
		return;		/* the order of a hash isn't defined */
	same(p, kernel, ours);
	if (!kernel && !is_hash(p))
		same_bytes(p, k, o, p->spec.attr.key_size);
}

#define ROW (KEY_MOST + 8)

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, ROW);
}

/* Collects all keys. A hash of the value follows each key. If the map has no order, the rows are
 * sorted. */
static int all(struct pair *p, bool kernel, uint8_t (*out)[ROW], int most)
{
	static uint8_t value[VALUES];
	uint8_t key[KEY_MOST] = { 0 };
	void *at = NULL;
	int n = 0;

	memset(out, 0, (size_t)most * sizeof(*out));
	while (n < most) {
		uint8_t next[KEY_MOST] = { 0 };
		uint64_t hash = 0;
		long err = kernel ? kernel_elem(BPF_MAP_GET_NEXT_KEY, p->fd, at, next, 0) :
				    pb_bpf_map_get_next_key(&p->ours, at, next);

		if (err)
			break;
		memcpy(key, next, KEY_MOST);
		at = key;
		err = kernel ? kernel_elem(BPF_MAP_LOOKUP_ELEM, p->fd, key, value, 0) :
			       pb_bpf_map_lookup_elem(&p->ours, key, value, 0);
		if (!err)
			ids_to_numbers(p, value);
		for (uint64_t i = 0; !err && i < p->value_size; i++)
			hash = hash * 31 + value[i];
		hash = err ? (uint64_t)err : hash;
		memcpy(out[n], key, KEY_MOST);
		memcpy(out[n++] + KEY_MOST, &hash, 8);
	}
	if (is_hash(p))
		qsort(out, (size_t)n, sizeof(*out), by_bytes);
	return n;
}

static void op_all(struct pair *p)
{
	static uint8_t k[3 * MAX_MOST][ROW], o[3 * MAX_MOST][ROW];
	int nr = all(p, true, k, 3 * MAX_MOST);

	p->op = "all keys";
	same(p, nr, all(p, false, o, 3 * MAX_MOST));
	same_bytes(p, k, o, (size_t)nr * sizeof(*k));
}

/* ---- batches ----------------------------------------------------------------------- */

#define BATCH_MOST (2 * MAX_MOST)

struct buffers {
	uint8_t keys[BATCH_MOST * KEY_MOST], values[BATCH_MOST * VALUES], cursor[KEY_MOST];
	uint32_t count;
};

static long kernel_batch(struct pair *p, int cmd, struct buffers *b, bool first,
			 uint64_t elem_flags, uint64_t flags)
{
	union bpf_attr a;
	long ret;

	memset(&a, 0, sizeof(a));
	a.batch.map_fd = (uint32_t)p->fd;
	a.batch.in_batch = first ? 0 : (uintptr_t)b->cursor;
	a.batch.out_batch = (uintptr_t)b->cursor;
	a.batch.keys = (uintptr_t)b->keys;
	a.batch.values = (uintptr_t)b->values;
	a.batch.count = b->count;
	a.batch.elem_flags = elem_flags;
	a.batch.flags = flags;
	ret = ret_of(kernel_bpf(cmd, &a));
	b->count = a.batch.count;
	return ret;
}

static long our_batch(struct pair *p, int cmd, struct buffers *b, bool first, uint64_t elem_flags,
		      uint64_t flags)
{
	struct pb_bpf_map_batch batch = { first ? NULL : b->cursor, b->cursor, b->keys, b->values,
					  &b->count, elem_flags, flags };

	switch (cmd) {
	case BPF_MAP_LOOKUP_BATCH:
		return pb_bpf_map_lookup_batch(&p->ours, &batch);
	case BPF_MAP_LOOKUP_AND_DELETE_BATCH:
		return pb_bpf_map_lookup_and_delete_batch(&p->ours, &batch);
	case BPF_MAP_UPDATE_BATCH:
		return pb_bpf_map_update_batch(&p->ours, &batch);
	default:
		return pb_bpf_map_delete_batch(&p->ours, &batch);
	}
}

static int sum_bytes(const struct pair *p, const struct buffers *b)
{
	int sum = 0;

	for (uint64_t i = 0; i < (uint64_t)b->count * p->spec.attr.key_size; i++)
		sum += b->keys[i];
	for (uint64_t i = 0; i < b->count * p->value_size; i++)
		if (!of_maps(p))
			sum += b->values[i];
	return sum;
}

/* Reads all elements in steps. Hashes have no order, so for them only the totals are compared. */
static void op_lookup_batch(struct pair *p)
{
	static struct buffers k, o;
	int cmd = rnd(3) ? BPF_MAP_LOOKUP_BATCH : BPF_MAP_LOOKUP_AND_DELETE_BATCH,
		sum_k = 0, sum_o = 0;
	uint64_t elem_flags = rnd(8) ? 0 : some_flags(), flags = rnd(12) ? 0 : 1;
	uint32_t step = is_hash(p) ? BATCH_MOST : rnd(7), nr_k = 0, nr_o = 0;
	long kernel, ours;

	p->op = cmd == BPF_MAP_LOOKUP_BATCH ? "lookup_batch" : "lookup_and_delete_batch";
	if (!p->spec.attr.key_size)
		return;
	for (int i = 0; i < 3 * MAX_MOST; i++) {
		k.count = o.count = step;
		kernel = kernel_batch(p, cmd, &k, !i, elem_flags, flags);
		ours = our_batch(p, cmd, &o, !i, elem_flags, flags);
		same(p, kernel, ours);
		if (kernel && kernel != -ENOENT)
			return;
		same(p, k.count, o.count);
		if (!is_hash(p) && k.count == o.count)
			same_bytes(p, k.keys, o.keys, (size_t)k.count * p->spec.attr.key_size);
		sum_k += sum_bytes(p, &k);
		sum_o += sum_bytes(p, &o);
		nr_k += k.count;
		nr_o += o.count;
		if (kernel || ours || !step)
			break;
	}
	same(p, nr_k, nr_o);
	same(p, sum_k, sum_o);
}

static void op_change_batch(struct pair *p)
{
	static struct buffers k, o;
	int cmd = rnd(2) ? BPF_MAP_UPDATE_BATCH : BPF_MAP_DELETE_BATCH;
	uint64_t elem_flags = rnd(3) ? 0 : some_flags();
	uint32_t nr = rnd(6);
	long kernel, ours;

	p->op = cmd == BPF_MAP_UPDATE_BATCH ? "update_batch" : "delete_batch";
	if (!p->spec.attr.key_size)
		return;
	for (uint32_t i = 0; i < nr; i++) {
		some_key(p, k.keys + i * p->spec.attr.key_size);
		some_value(p, k.values + i * p->value_size, o.values + i * p->value_size);
	}
	memcpy(o.keys, k.keys, sizeof(k.keys));
	k.count = o.count = nr;
	kernel = kernel_batch(p, cmd, &k, true, elem_flags, 0);
	ours = our_batch(p, cmd, &o, true, elem_flags, 0);
	same(p, kernel, ours);
	if (kernel != -PB_BPF_ENOTSUPP && kernel != -EINVAL && kernel != -EPERM)
		same(p, k.count, o.count);
}

static void op_freeze(struct pair *p)
{
	union bpf_attr a;

	if (rnd(30))
		return;
	memset(&a, 0, sizeof(a));
	a.map_fd = (uint32_t)p->fd;
	p->op = "freeze";
	same(p, ret_of(kernel_bpf(BPF_MAP_FREEZE, &a)), pb_bpf_map_freeze(&p->ours));
}

/* ---- objects ------------------------------------------------------------------------ */

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

/* ---- sequences ----------------------------------------------------------------------- */

static bool make(struct pair *p)
{
	int ours;

	p->op = "create";
	if (of_maps(p))
		make_inner(p);
	p->fd = kernel_create(&p->spec, of_maps(p) ? p->inner_fd[0] : -1);
	ours = pb_bpf_map_create(&p->ours, &p->spec);
	same(p, p->fd < 0 ? p->fd : 0, ours);
	if (p->fd >= 0 && !ours) {
		p->value_size = pb_bpf_map_value_size(&p->ours);
		p->ours.objects = of_maps(p) ? &p->objects : NULL;
		return true;
	}
	if (p->fd >= 0)
		close(p->fd);
	if (!ours)
		pb_bpf_map_close(&p->ours);
	return false;
}

static void unmake(struct pair *p, bool made)
{
	if (made) {
		close(p->fd);
		pb_bpf_map_close(&p->ours);
	}
	for (uint32_t i = 0; of_maps(p) && i < NR_INNER; i++) {
		close(p->inner_fd[i]);
		pb_bpf_map_close(&p->inner[i]);
	}
}

static void sequence(struct pair *p, int nr)
{
	static void (*const ops[])(struct pair *) = {
		op_lookup, op_lookup, op_lookup, op_update, op_update, op_update, op_update,
		op_delete, op_next, op_next, op_all, op_lookup_batch, op_change_batch, op_freeze,
	};
	const struct pb_bpf_map_attr *a = &p->spec.attr;
	bool made = make(p), small = a->key_size <= KEY_MOST && a->value_size <= VALUE_MOST;

	for (int i = 0; made && small && i < nr; i++)
		ops[rnd(i < nr / 2 ? sizeof(ops) / sizeof(*ops) - 1 :
			sizeof(ops) / sizeof(*ops))](p);
	unmake(p, made);
}

static const uint32_t types[] = {
	BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_PERCPU_HASH, BPF_MAP_TYPE_PERCPU_ARRAY,
	BPF_MAP_TYPE_LRU_HASH, BPF_MAP_TYPE_LRU_PERCPU_HASH, BPF_MAP_TYPE_ARRAY_OF_MAPS,
	BPF_MAP_TYPE_HASH_OF_MAPS, BPF_MAP_TYPE_PROG_ARRAY, BPF_MAP_TYPE_PERF_EVENT_ARRAY,
	BPF_MAP_TYPE_CGROUP_ARRAY, BPF_MAP_TYPE_LPM_TRIE, BPF_MAP_TYPE_QUEUE, BPF_MAP_TYPE_STACK,
	BPF_MAP_TYPE_RINGBUF, BPF_MAP_TYPE_STACK_TRACE,
};

/* Chooses sizes and flags so that the map type mostly accepts them. */
static void fitting(struct pair *p, uint32_t type)
{
	struct pb_bpf_map_attr *a = &p->spec.attr;

	*a = (struct pb_bpf_map_attr){ type, 1 + rnd(KEY_MOST), 1 + rnd(VALUE_MOST),
				       1 + rnd(MAX_MOST), 0 };
	switch (type) {
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		a->key_size = 4;
		break;
	case BPF_MAP_TYPE_HASH_OF_MAPS:
		a->value_size = 4;
		break;
	case BPF_MAP_TYPE_PROG_ARRAY:
	case BPF_MAP_TYPE_PERF_EVENT_ARRAY:
	case BPF_MAP_TYPE_CGROUP_ARRAY:
	case BPF_MAP_TYPE_ARRAY_OF_MAPS:
		a->key_size = a->value_size = 4;
		break;
	case BPF_MAP_TYPE_LPM_TRIE:
		a->key_size = 5 + rnd(8);
		a->flags = BPF_F_NO_PREALLOC;
		break;
	case BPF_MAP_TYPE_QUEUE:
	case BPF_MAP_TYPE_STACK:
		a->key_size = 0;
		break;
	case BPF_MAP_TYPE_RINGBUF:
		a->key_size = a->value_size = 0;
		a->max_entries = 4096u << rnd(3);
		break;
	case BPF_MAP_TYPE_STACK_TRACE:
		a->key_size = 4;
		a->value_size = 8 * (1 + rnd(8));
		break;
	case BPF_MAP_TYPE_LRU_HASH:
	case BPF_MAP_TYPE_LRU_PERCPU_HASH:
		a->max_entries = 1000;	/* large enough to evict no element: the kernel may evict
					 * other elements than our map */
		break;
	}
	if (type == BPF_MAP_TYPE_HASH && rnd(2))
		a->flags |= BPF_F_NO_PREALLOC;
	if ((type == BPF_MAP_TYPE_HASH || type == BPF_MAP_TYPE_ARRAY) && !rnd(3)) {
		a->key_size = 4;
		a->value_size = 16;
		p->spec.types.spin_lock_off = 4;
	}
	if (!rnd(6))
		a->flags |= rnd(2) ? BPF_F_RDONLY : BPF_F_WRONLY;
}

/* Chooses random attributes. Most maps with such attributes are refused. */
static void odd(struct pair *p, uint32_t type)
{
	static const uint32_t sizes[] = { 0, 1, 4, 5, 8, 12, 260, 261, 512, 4096, 32768, 32769,
		1 << 20, 1 << 22 };
	struct pb_bpf_map_attr *a = &p->spec.attr;

	fitting(p, type);
	p->spec.types.spin_lock_off = -1;
	for (int i = 1 + (int)rnd(2); i > 0; i--)
		switch (rnd(4)) {
		case 0:
			a->key_size = sizes[rnd(11)];
			break;
		case 1:
			a->value_size = sizes[rnd(14)];
			break;
		case 2:
			a->max_entries = rnd(3) ? rnd(4) * 1000 : 0;
			break;
		case 3:
			a->flags ^= 1u << (rnd(3) ? rnd(12) : rnd(32));
			break;
		}
	/* Patchbay doesn't support NUMA nodes, BTF descriptors, and tokens */
	a->flags &= ~(uint32_t)BPF_F_NUMA_NODE & 0xfff;
}

static uint32_t possible_cpus(void)
{
	FILE *f = fopen("/sys/devices/system/cpu/possible", "r");
	unsigned int from = 0, to = 0;

	if (f) {
		if (fscanf(f, "%u-%u", &from, &to) < 2)
			to = from;
		fclose(f);
	}
	return to + 1;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 3;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 0x9e3779b97f4a7c15ull;
	size_t nr_types = sizeof(types) / sizeof(*types);

	cpu_slots = possible_cpus();
	if (!kernel_is_there() || cpu_slots > CPU_SLOTS_MOST)
		return 77;
	for (int round = 0; round < rounds; round++)
		for (size_t t = 0; t < nr_types; t++)
			for (int what = 0; what < 12; what++) {
				static struct pair p;

				memset(&p, 0, sizeof(p));
				p.spec.cpu_slots = cpu_slots;
				p.spec.types = (struct pb_bpf_map_types){ .spin_lock_off = -1,
									  .timer_off = -1 };
				seed = seed * 6364136223846793005ull + 1442695040888963407ull;
				rng = p.seed = seed | 1;
				if (what)
					odd(&p, types[t]);
				else
					fitting(&p, types[t]);
				sequence(&p, what ? 10 : 800);
			}
	printf("%llu comparisons\n%d passed, %d failed\n", (unsigned long long)checks, !failures,
	       !!failures);
	return failures != 0;
}
