/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Applies the same random operations to a map of this kernel and to our map. Results, errors and
 * contents must be the same.
 *
 *   test_diff [ROUNDS [SEED]]
 */
#include <stdio.h>
#include <stdlib.h>

#include "pair.h"

#define CPU_SLOTS_MOST	64
#define VALUE_MOST	64
#define KEY_MOST	32
#define MAX_MOST	24
#define VALUES		(VALUE_MOST * CPU_SLOTS_MOST)

static uint32_t cpu_slots;
static uint64_t rng;

static uint32_t rnd(uint32_t below)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)((rng * 0x2545f4914f6cdd1dull >> 32) % below);
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
	if (pair_is(p, BPF_MAP_TYPE_LPM_TRIE) && n > 4) {
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
	if (pair_of_maps(p)) {
		uint32_t i = rnd(NR_INNER + 1), k = i < NR_INNER ? (uint32_t)p->inner_fd[i] : 9999;

		memcpy(kernel, &k, 4);
		memcpy(ours, &i, 4);
	} else if (p->spec.attr.type == BPF_MAP_TYPE_PROG_ARRAY ||
		   pair_is(p, BPF_MAP_TYPE_PERF_EVENT_ARRAY) ||
		   pair_is(p, BPF_MAP_TYPE_CGROUP_ARRAY)) {
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
	kernel = pair_kernel_elem(take ? BPF_MAP_LOOKUP_AND_DELETE_ELEM : BPF_MAP_LOOKUP_ELEM,
				  p->fd, at, k, flags);
	ours = take ? pb_bpf_map_lookup_and_delete_elem(&p->ours, at, o, flags) :
		      pb_bpf_map_lookup_elem(&p->ours, at, o, flags);
	pair_same(p, kernel, ours);
	if (!kernel) {
		pair_ids_to_numbers(p, k);
		pair_ids_to_numbers(p, o);
		pair_same_bytes(p, k, o, p->value_size);
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
	pair_same(p, pair_kernel_elem(BPF_MAP_UPDATE_ELEM, p->fd, at, k, flags),
		  pb_bpf_map_update_elem(&p->ours, at, o, flags));
}

static void op_delete(struct pair *p)
{
	uint8_t key[KEY_MOST];
	void *at = p->spec.attr.key_size ? key : NULL;

	some_key(p, key);
	p->op = "delete";
	pair_same(p, pair_kernel_elem(BPF_MAP_DELETE_ELEM, p->fd, at, NULL, 0),
		  pb_bpf_map_delete_elem(&p->ours, at));
}

static void op_next(struct pair *p)
{
	uint8_t key[KEY_MOST], k[KEY_MOST] = { 0 }, o[KEY_MOST] = { 0 };
	void *at = rnd(3) && p->spec.attr.key_size ? key : NULL;
	long kernel, ours;

	some_key(p, key);
	p->op = "get_next_key";
	kernel = pair_kernel_elem(BPF_MAP_GET_NEXT_KEY, p->fd, at, k, 0);
	ours = pb_bpf_map_get_next_key(&p->ours, at, o);
	if (pair_is_hash(p) && at)
		return;		/* the order of a hash isn't defined */
	pair_same(p, kernel, ours);
	if (!kernel && !pair_is_hash(p))
		pair_same_bytes(p, k, o, p->spec.attr.key_size);
}

#define ROW (KEY_MOST + 8)

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, ROW);
}

/* Stores a row for each element in out[]: the key and a hash of the value. If the map has no order,
 * sorts the rows. */
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
		long err = kernel ? pair_kernel_elem(BPF_MAP_GET_NEXT_KEY, p->fd, at, next, 0) :
				    pb_bpf_map_get_next_key(&p->ours, at, next);

		if (err)
			break;
		memcpy(key, next, KEY_MOST);
		at = key;
		err = kernel ? pair_kernel_elem(BPF_MAP_LOOKUP_ELEM, p->fd, key, value, 0) :
			       pb_bpf_map_lookup_elem(&p->ours, key, value, 0);
		if (!err)
			pair_ids_to_numbers(p, value);
		for (uint64_t i = 0; !err && i < p->value_size; i++)
			hash = hash * 31 + value[i];
		hash = err ? (uint64_t)err : hash;
		memcpy(out[n], key, KEY_MOST);
		memcpy(out[n++] + KEY_MOST, &hash, 8);
	}
	if (pair_is_hash(p))
		qsort(out, (size_t)n, sizeof(*out), by_bytes);
	return n;
}

static void op_all(struct pair *p)
{
	static uint8_t k[3 * MAX_MOST][ROW], o[3 * MAX_MOST][ROW];
	int nr = all(p, true, k, 3 * MAX_MOST);

	p->op = "all keys";
	pair_same(p, nr, all(p, false, o, 3 * MAX_MOST));
	pair_same_bytes(p, k, o, (size_t)nr * sizeof(*k));
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
	ret = kernel_ret(kernel_bpf(cmd, &a));
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
		if (!pair_of_maps(p))
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
	uint32_t step = pair_is_hash(p) ? BATCH_MOST : rnd(7), nr_k = 0, nr_o = 0;
	long kernel, ours;

	p->op = cmd == BPF_MAP_LOOKUP_BATCH ? "lookup_batch" : "lookup_and_delete_batch";
	if (!p->spec.attr.key_size)
		return;
	for (int i = 0; i < 3 * MAX_MOST; i++) {
		k.count = o.count = step;
		kernel = kernel_batch(p, cmd, &k, !i, elem_flags, flags);
		ours = our_batch(p, cmd, &o, !i, elem_flags, flags);
		pair_same(p, kernel, ours);
		if (kernel && kernel != -ENOENT)
			return;
		pair_same(p, k.count, o.count);
		if (!pair_is_hash(p) && k.count == o.count)
			pair_same_bytes(p, k.keys, o.keys, (size_t)k.count * p->spec.attr.key_size);
		sum_k += sum_bytes(p, &k);
		sum_o += sum_bytes(p, &o);
		nr_k += k.count;
		nr_o += o.count;
		if (kernel || ours || !step)
			break;
	}
	pair_same(p, nr_k, nr_o);
	pair_same(p, sum_k, sum_o);
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
	pair_same(p, kernel, ours);
	if (kernel != -PB_BPF_ENOTSUPP && kernel != -EINVAL && kernel != -EPERM)
		pair_same(p, k.count, o.count);
}

static void op_freeze(struct pair *p)
{
	union bpf_attr a;

	if (rnd(30))
		return;
	memset(&a, 0, sizeof(a));
	a.map_fd = (uint32_t)p->fd;
	p->op = "freeze";
	pair_same(p, kernel_ret(kernel_bpf(BPF_MAP_FREEZE, &a)), pb_bpf_map_freeze(&p->ours));
}

/* ---- sequences ----------------------------------------------------------------------- */

static void sequence(struct pair *p, int nr)
{
	static void (*const ops[])(struct pair *) = {
		op_lookup, op_lookup, op_lookup, op_update, op_update, op_update, op_update,
		op_delete, op_next, op_next, op_all, op_lookup_batch, op_change_batch, op_freeze,
	};
	const struct pb_bpf_map_attr *a = &p->spec.attr;
	bool made = pair_make(p), small = a->key_size <= KEY_MOST && a->value_size <= VALUE_MOST;

	for (int i = 0; made && small && i < nr; i++)
		ops[rnd(i < nr / 2 ? sizeof(ops) / sizeof(*ops) - 1 :
			sizeof(ops) / sizeof(*ops))](p);
	pair_unmake(p, made);
}

static const uint32_t types[] = {
	BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_PERCPU_HASH, BPF_MAP_TYPE_PERCPU_ARRAY,
	BPF_MAP_TYPE_LRU_HASH, BPF_MAP_TYPE_LRU_PERCPU_HASH, BPF_MAP_TYPE_ARRAY_OF_MAPS,
	BPF_MAP_TYPE_HASH_OF_MAPS, BPF_MAP_TYPE_PROG_ARRAY, BPF_MAP_TYPE_PERF_EVENT_ARRAY,
	BPF_MAP_TYPE_CGROUP_ARRAY, BPF_MAP_TYPE_LPM_TRIE, BPF_MAP_TYPE_QUEUE, BPF_MAP_TYPE_STACK,
	BPF_MAP_TYPE_RINGBUF, BPF_MAP_TYPE_STACK_TRACE,
};

/* Returns whether the kernel makes maps of this type with BTF. Some of them can't have a lock. */
static bool may_have_types(uint32_t type)
{
	return type == BPF_MAP_TYPE_HASH || type == BPF_MAP_TYPE_PERCPU_HASH ||
	       type == BPF_MAP_TYPE_LRU_HASH || type == BPF_MAP_TYPE_LRU_PERCPU_HASH ||
	       type == BPF_MAP_TYPE_ARRAY || type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

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
		a->max_entries = 1000;	/* so large that no element is evicted, because the kernel
					 * may evict other elements than our map */
		break;
	}
	if (type == BPF_MAP_TYPE_HASH && rnd(2))
		a->flags |= BPF_F_NO_PREALLOC;
	if (may_have_types(type) && !rnd(3)) {
		a->key_size = 4;
		a->value_size = 16;
		a->flags |= rnd(6) ? 0 : BPF_F_RDONLY_PROG;
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
	/* Patchbay doesn't support NUMA nodes, BTF descriptors or tokens */
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
	printf("%llu comparisons\n%d passed, %d failed\n", (unsigned long long)pair_checks,
	       !pair_failures, !!pair_failures);
	return pair_failures != 0;
}
