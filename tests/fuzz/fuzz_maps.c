/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuzzes the operations on eBPF maps with hostile map blocks. The fuzzer acts as another process,
 * which has made the block and changes it between the operations. Either the block must be refused,
 * or every operation on it must end and must stay inside the block. The page after the block can't
 * be accessed.
 *
 * The input is a head of 16 bytes, the operations, and the block. The head begins with the number
 * of operations, in two bytes. An operation has 8 bytes (struct op).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/core/program.h"
#include "bpf/map/map_ringbuf.h"
#include "bpf/map/map_stack.h"
#include "bpf/map/map_sys.h"
#include "driver.h"

#define PAGE		4096ul
#define BLOCK_MOST	(256ul << 10)
#define VALUES_MOST	(1ul << 17)
#define MAX		12

struct op {
	uint8_t what, key[3];
	uint32_t arg;
};

struct ground {
	uint8_t *mem, *block;
	size_t size, span, mapped;
	struct pb_bpf_map map;
	struct pb_bpf_run run;
	uint8_t *keys, *values;
};

/* Reports every other process as dead. If another process seemed to hold a lock and to be alive, an
 * operation would wait for the lock for milliseconds. */
static bool alive(const struct pb_bpf_map *map, uint32_t owner)
{
	return owner == map->owner;
}

static void *find(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
	return id % 2 ? o->arg : NULL;
}

static int64_t get(const struct pb_bpf_objects *o, uint32_t kind, uint32_t handle)
{
	return handle % 5 ? 1 + (int64_t)(handle % 7) : -9;
}

static void put(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
}

/* ---- the block, at the end of its memory ----------------------------------------------- */

static bool lay_out(struct ground *g, const uint8_t *data, size_t size)
{
	struct pb_bpf_map_head head;
	uint64_t block, span;
	size_t room;

	if (size < sizeof(head))
		return false;
	memcpy(&head, data, sizeof(head));
	block = pb_bpf_map_block_size(&head, BLOCK_MOST, &span);
	if (!block || span > 2 * BLOCK_MOST)
		return false;
	room = (span + PAGE - 1) / PAGE * PAGE;
	g->mapped = room + PAGE;
	g->mem = mmap(NULL, g->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (g->mem == MAP_FAILED)
		return false;
	if (span > block) {
		/* a ring buffer, whose data is mapped twice */
		int fd = memfd_create("fuzz", MFD_CLOEXEC);

		FUZZ_CHECK(fd >= 0 && !ftruncate(fd, (off_t)block));
		FUZZ_CHECK(mmap(g->mem, block, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
				fd, 0) != MAP_FAILED);
		FUZZ_CHECK(mmap(g->mem + block, span - block, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_FIXED, fd,
				(off_t)(block - (span - block))) != MAP_FAILED);
		close(fd);
		g->block = g->mem;
	} else {
		FUZZ_CHECK(!mprotect(g->mem, room, PROT_READ | PROT_WRITE));
		g->block = g->mem + (head.spec.attr.type == BPF_MAP_TYPE_ARRAY ? 0 :
				     (room - block) / 64 * 64);
	}
	g->size = block;
	g->span = span;
	memcpy(g->block, data, size < block ? size : block);
	return true;
}

static bool inside(const struct ground *g, const void *p, uint64_t n)
{
	return (uint64_t)((const uint8_t *)p - g->mem) <= g->mapped - PAGE - n;
}

/* ---- operations ------------------------------------------------------------------------ */

static int64_t seen(void *arg, struct pb_bpf_map *map, const void *key, void *value)
{
	struct ground *g = arg;

	FUZZ_CHECK(inside(g, value, map->attr.value_size));
	memcpy(g->values, value, map->attr.value_size);
	return 0;
}

static int record(void *arg, const void *data, uint64_t size)
{
	FUZZ_CHECK(inside(arg, data, size));
	return 0;
}

static void use_value(struct ground *g, const struct op *op)
{
	struct pb_bpf_map *m = &g->map;
	uint8_t *value = m->ops->lookup(m, g->keys, &g->run);

	if (!value || (void *)value == m->objects->arg)
		return;
	FUZZ_CHECK(inside(g, value, m->attr.value_size));
	memset(value, (int)op->arg, m->attr.value_size);
	if (!pb_bpf_map_lock(m, value, 7))
		pb_bpf_map_unlock(m, value);
}

static void use_ring(struct ground *g, const struct op *op)
{
	struct pb_bpf_map *m = &g->map;
	uint64_t size = op->arg % 5000;
	void *to;

	if (m->attr.type != BPF_MAP_TYPE_RINGBUF)
		return;
	to = pb_bpf_ringbuf_reserve(m, size, 0);
	if (to) {
		FUZZ_CHECK(inside(g, to, size));
		memset(to, (int)op->arg, size);
		pb_bpf_ringbuf_submit(m, to, 0, op->key[0] & 1);
	}
	if (op->key[0] & 2)
		pb_bpf_ringbuf_consume(m, record, g);
	pb_bpf_ringbuf_query(m, op->key[1]);
}

static void use_batch(struct ground *g, const struct op *op)
{
	struct pb_bpf_map *m = &g->map;
	uint32_t count = 1 + op->key[0] % 4;
	uint8_t cursor[512];
	struct pb_bpf_map_batch b = { op->key[1] & 1 ? cursor : NULL, cursor, g->keys, g->values,
				      &count, 0, 0 };

	memset(cursor, op->key[2], sizeof(cursor));
	if (!m->attr.key_size || pb_bpf_map_value_size(m) * 4 > VALUES_MOST)
		return;
	switch (op->arg % 4) {
	case 0:
		pb_bpf_map_lookup_batch(m, &b);
		break;
	case 1:
		pb_bpf_map_lookup_and_delete_batch(m, &b);
		break;
	case 2:
		pb_bpf_map_update_batch(m, &b);
		break;
	default:
		pb_bpf_map_delete_batch(m, &b);
	}
}

static void operate(struct ground *g, const struct op *op)
{
	struct pb_bpf_map *m = &g->map;
	void *key = m->attr.key_size ? g->keys : NULL;
	uint64_t ips[4] = { op->arg, op->key[0], 1, 2 };
	uint8_t next[512];

	memset(g->keys, 0, 2048);
	memcpy(g->keys, op->key, 3);
	switch (op->what % 12) {
	case 0:
		pb_bpf_map_lookup_elem(m, key, g->values, 0);
		break;
	case 1:
		pb_bpf_map_update_elem(m, key, g->values, op->arg % 3);
		break;
	case 2:
		pb_bpf_map_delete_elem(m, key);
		break;
	case 3:
		pb_bpf_map_get_next_key(m, op->arg & 1 ? key : NULL, next);
		break;
	case 4:
		pb_bpf_map_lookup_and_delete_elem(m, key, g->values, 0);
		break;
	case 5:
		use_value(g, op);
		break;
	case 6:
		m->ops->update(m, g->keys, g->values, op->arg % 3, &g->run);
		break;
	case 7:
		m->ops->each(m, seen, g, &g->run);
		break;
	case 8:
		use_ring(g, op);
		break;
	case 9:
		use_batch(g, op);
		break;
	case 10:
		if (m->ops->repair)
			m->ops->repair(m, op->key[0]);
		if (m->attr.type == BPF_MAP_TYPE_STACK_TRACE)
			pb_bpf_stack_put(m, ips, 1 + op->key[0] % 4,
					 op->key[1] & 1 ? BPF_F_REUSE_STACKID : 0, NULL);
		break;
	default:
		/* plays the other process, which writes into the block */
		memcpy(g->block + (op->arg % (g->size - 4)), op->key, 3);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pb_bpf_objects objects = { find, get, put, NULL };
	struct ground g = { .run = { .cpu_slot = 1, .thread = 1 } };
	struct op op;
	uint16_t nr;

	if (size < 16)
		return 0;
	memcpy(&nr, data, 2);
	nr %= 256;
	if (size < 16 + nr * sizeof(op) ||
	    !lay_out(&g, data + 16 + nr * sizeof(op), size - 16 - nr * sizeof(op)))
		return 0;
	g.keys = calloc(1, 8192);
	g.values = calloc(1, 2 * VALUES_MOST);
	if (!pb_bpf_map_open(&g.map, g.block, g.size, g.span) &&
	    pb_bpf_map_value_size(&g.map) <= VALUES_MOST && g.map.attr.key_size <= 512) {
		g.map.owner = 2;
		g.map.alive = alive;
		objects.arg = &g.map;
		g.map.objects = &objects;
		for (uint16_t i = 0; i < nr; i++) {
			memcpy(&op, data + 16 + i * sizeof(op), sizeof(op));
			operate(&g, &op);
		}
	}
	free(g.keys);
	free(g.values);
	munmap(g.mem, g.mapped);
	return 0;
}

/* ---- seeds: maps of each type ---------------------------------------------------------- */

static void seed(struct fuzz_rng *r, struct pb_bpf_map_attr attr)
{
	struct pb_bpf_map_spec spec = {
		.attr = attr, .inner = { BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0 }, .cpu_slots = 2,
		.types = { .spin_lock_off = -1, .timer_off = -1 } };
	uint16_t nr = 160;
	size_t ops = nr * sizeof(struct op);
	uint8_t *input;
	uint64_t size;
	int err;

	if (attr.value_size >= 16)
		spec.types.spin_lock_off = 8;
	size = pb_bpf_map_size(&spec, &err);
	input = calloc(1, 16 + ops + size + 4096);
	memcpy(input, &nr, 2);
	for (size_t i = 0; i < ops; i++)
		input[16 + i] = (uint8_t)(i % 8 == 1 ? fuzz_random(r) % 16 :
					  i % 8 == 2 || i % 8 == 3 ? 0 : fuzz_random(r));
	if (size && size < BLOCK_MOST) {
		/* the block of a map must be aligned */
		void *block = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

		memset(block, 0, size);
		pb_bpf_map_format(block, &spec, 5);
		memcpy(input + 16 + ops, block, size);
		fuzz_seed(input, 16 + ops + size);
		free(block);
	}
	free(input);
}

void fuzz_seeds(void)
{
	static const struct pb_bpf_map_attr attrs[] = {
		{ BPF_MAP_TYPE_HASH, 8, 8, MAX, 0 }, { BPF_MAP_TYPE_HASH, 8, 24, MAX, 0 },
		{ BPF_MAP_TYPE_HASH, 3, 40, 1, BPF_F_NO_PREALLOC },
		{ BPF_MAP_TYPE_PERCPU_HASH, 8, 8, MAX, 0 },
		{ BPF_MAP_TYPE_LRU_HASH, 8, 8, MAX, 0 },
		{ BPF_MAP_TYPE_LRU_PERCPU_HASH, 4, 24, 5, 0 },
		{ BPF_MAP_TYPE_ARRAY, 4, 24, MAX, 0 }, { BPF_MAP_TYPE_PERCPU_ARRAY, 4, 12, MAX, 0 },
		{ BPF_MAP_TYPE_PROG_ARRAY, 4, 4, MAX, 0 },
		{ BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, MAX, 0 },
		{ BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, MAX, 0 },
		{ BPF_MAP_TYPE_LPM_TRIE, 8, 8, MAX, BPF_F_NO_PREALLOC },
		{ BPF_MAP_TYPE_LPM_TRIE, 20, 24, 3, BPF_F_NO_PREALLOC },
		{ BPF_MAP_TYPE_QUEUE, 0, 8, MAX, 0 },
		{ BPF_MAP_TYPE_STACK, 0, 24, 3, 0 }, { BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0 },
		{ BPF_MAP_TYPE_STACK_TRACE, 4, 32, MAX, 0 },
		{ BPF_MAP_TYPE_STACK_TRACE, 4, 64, 4, BPF_F_STACK_BUILD_ID },
	};
	struct fuzz_rng r;

	fuzz_rng_seed(&r, 1);
	for (size_t i = 0; i < sizeof(attrs) / sizeof(*attrs); i++)
		for (int n = 0; n < 6; n++)
			seed(&r, attrs[i]);
}
