/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls map operations as eBPF programs do: on several threads, in signal handlers, and while locks
 * are held. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/core/program.h"
#include "bpf/map/map_file.h"
#include "bpf/map/map_hash.h"
#include "bpf/map/map_ringbuf.h"
#include "bpf/map/map_stack.h"
#include "bpf/map/map_sys.h"
#include "../common/reopen.h"

static struct pb_bpf_map_spec spec_of(uint32_t type, uint32_t key, uint32_t value, uint32_t max,
				      uint32_t flags)
{
	return (struct pb_bpf_map_spec){ .attr = { type, key, value, max, flags }, .cpu_slots = 4,
		.types = { .spin_lock_off = -1, .timer_off = -1 } };
}

static void make(struct pb_bpf_map *m, uint32_t type, uint32_t key, uint32_t value, uint32_t max,
		 uint32_t flags)
{
	struct pb_bpf_map_spec spec = spec_of(type, key, value, max, flags);

	assert_int_equal(pb_bpf_map_create(m, &spec), 0);
}

/* ---- threads ---------------------------------------------------------------------- */

#define ROUNDS 30000

struct worker {
	struct pb_bpf_map *map;
	uint32_t cpu_slot;
	pthread_t thread;
};

/* Changes random keys. Each word of a value is equal to the value's key. */
static void *change_keys(void *arg)
{
	struct worker *w = arg;
	struct pb_bpf_run run = { .cpu_slot = w->cpu_slot, .thread = (uint32_t)gettid() };
	uint64_t x = w->cpu_slot + 1, bad = 0;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t key, value[4], *at;

		x = x * 6364136223846793005ull + 1442695040888963407ull;
		key = x >> 58;
		for (int k = 0; k < 4; k++)
			value[k] = key;
		if (x >> 20 & 1)
			w->map->ops->update(w->map, &key, value, BPF_ANY, &run);
		else
			w->map->ops->remove(w->map, &key, &run);
		at = w->map->ops->lookup(w->map, &key, &run);
		bad += at && at[0] > 63;
	}
	return (void *)bad;
}

static void on_threads(struct pb_bpf_map *m, void *(*fn)(void *arg), uint32_t nr)
{
	struct worker w[4];
	void *bad;

	for (uint32_t i = 0; i < nr; i++) {
		w[i] = (struct worker){ m, i, 0 };
		assert_int_equal(pthread_create(&w[i].thread, NULL, fn, &w[i]), 0);
	}
	for (uint32_t i = 0; i < nr; i++) {
		pthread_join(w[i].thread, &bad);
		assert_null(bad);
	}
}

static int64_t count_key(void *arg, struct pb_bpf_map *map, const void *key, void *value)
{
	uint32_t *seen = arg;
	uint64_t k, v;

	memcpy(&k, key, 8);
	memcpy(&v, value, 8);
	assert_true(k < 64);
	assert_true(v == k);
	assert_int_equal(seen[k], 0);
	seen[k] = 1;
	return 0;
}

static void hash_threads(void **state)
{
	static const struct { uint32_t type, value, max; } cases[] = {
		{ BPF_MAP_TYPE_HASH, 8, 64 }, { BPF_MAP_TYPE_HASH, 32, 64 },
		{ BPF_MAP_TYPE_HASH, 32, 20 }, { BPF_MAP_TYPE_LRU_HASH, 8, 20 },
		{ BPF_MAP_TYPE_LRU_HASH, 32, 20 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t seen[64] = { 0 }, nr = 0;
		uint64_t key, value[4] = { 0 };
		struct pb_bpf_map m;

		make(&m, cases[i].type, 8, cases[i].value, cases[i].max, 0);
		on_threads(&m, change_keys, 3);
		assert_true(m.ops->each(&m, count_key, seen, NULL) <= cases[i].max);
		/* no element was lost: the test can delete all elements and then insert the maximal
		 * number of elements */
		for (key = 0; key < 64; key++)
			assert_int_equal(pb_bpf_map_delete_elem(&m, &key), seen[key] ? 0 : -ENOENT);
		for (key = 0; key < 64; key++)
			nr += !pb_bpf_map_update_elem(&m, &key, value, 0);
		assert_int_equal(nr, cases[i].type == BPF_MAP_TYPE_HASH ? cases[i].max : 64);
		pb_bpf_map_close(&m);
	}
}

static void *count_up(void *arg)
{
	struct worker *w = arg;
	struct pb_bpf_run run = { .cpu_slot = w->cpu_slot, .thread = (uint32_t)gettid() };

	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint32_t key = i % 4;
		uint64_t *value = w->map->ops->lookup(w->map, &key, &run), one = 1;

		if (value)
			++*value;
		else if (w->map->ops->update(w->map, &key, &one, BPF_NOEXIST, &run) == -EEXIST)
			i--;
	}
	return NULL;
}

static void cpu_slots(void **state)
{
	static const uint32_t types[] = { BPF_MAP_TYPE_PERCPU_ARRAY, BPF_MAP_TYPE_PERCPU_HASH,
		BPF_MAP_TYPE_LRU_PERCPU_HASH };

	for (size_t t = 0; t < 3; t++) {
		uint64_t values[4], sum = 0;
		struct pb_bpf_map m;

		make(&m, types[t], 4, 8, 64, 0);
		on_threads(&m, count_up, 4);
		for (uint32_t key = 0; key < 4; key++) {
			assert_int_equal(pb_bpf_map_lookup_elem(&m, &key, values, 0), 0);
			for (int l = 0; l < 4; l++)
				sum += values[l];
		}
		assert_int_equal(sum, 4 * ROUNDS);
		pb_bpf_map_close(&m);
	}
}

/* ---- handlers ------------------------------------------------------------------------ */

static struct pb_bpf_map in_handler[4];
static volatile uint64_t handled, refused;

static void handler(int sig)
{
	struct pb_bpf_run run = { .cpu_slot = 1, .thread = (uint32_t)gettid() };
	uint64_t key = handled % 8, value[4] = { key, key, key, key }, prefix = 8 | key << 32;
	void *to;

	in_handler[0].ops->update(&in_handler[0], &key, value, BPF_ANY, &run);
	if (handled & 1)
		in_handler[0].ops->remove(&in_handler[0], &key, &run);
	refused += in_handler[1].ops->push(&in_handler[1], value, BPF_EXIST, &run) == -EBUSY;
	refused += in_handler[2].ops->update(&in_handler[2], &prefix, value, BPF_ANY, &run) ==
		-EBUSY;
	to = pb_bpf_ringbuf_reserve(&in_handler[3], 16, 0);
	if (to)
		pb_bpf_ringbuf_submit(&in_handler[3], to, 0, false);
	handled++;
}

static int none(void *arg, const void *data, uint64_t size)
{
	++*(uint64_t *)arg;
	return 0;
}

/* An operation in a signal handler never waits for the operation that the handler interrupted. */
static void handlers(void **state)
{
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { 0 };
	struct pb_bpf_run run = { .cpu_slot = 0, .thread = (uint32_t)gettid() };
	uint64_t records = 0, put = 0;

	make(&in_handler[0], BPF_MAP_TYPE_HASH, 8, 32, 16, 0);
	make(&in_handler[1], BPF_MAP_TYPE_QUEUE, 0, 32, 16, 0);
	make(&in_handler[2], BPF_MAP_TYPE_LPM_TRIE, 8, 32, 64, BPF_F_NO_PREALLOC);
	make(&in_handler[3], BPF_MAP_TYPE_RINGBUF, 0, 0, 65536, 0);
	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &often, NULL);
	for (uint64_t i = 0; handled < 3000 && i < 100000000; i++) {
		uint64_t key = i % 8, value[4] = { key, key, key, key }, prefix = 8 | key << 32,
			before = handled;
		void *to;

		in_handler[0].ops->update(&in_handler[0], &key, value, BPF_ANY, &run);
		in_handler[1].ops->push(&in_handler[1], value, BPF_EXIST, &run);
		in_handler[2].ops->update(&in_handler[2], &prefix, value, BPF_ANY, &run);
		to = pb_bpf_ringbuf_reserve(&in_handler[3], 16, 0);
		if (to)
			pb_bpf_ringbuf_submit(&in_handler[3], to, 0, false);
		put += to && before == handled;
		pb_bpf_ringbuf_consume(&in_handler[3], none, &records);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	assert_true(handled >= 3000);
	assert_true(records >= put);
	for (uint64_t key = 0; key < 8; key++) {
		uint64_t value[4];

		if (!pb_bpf_map_lookup_elem(&in_handler[0], &key, value, 0))
			assert_true(value[0] == key && value[3] == key);
	}
	for (int i = 0; i < 4; i++)
		pb_bpf_map_close(&in_handler[i]);
}

/* ---- locks ----------------------------------------------------------------------------- */

static void locks(void **state)
{
	struct pb_bpf_map_spec spec = spec_of(BPF_MAP_TYPE_ARRAY, 4, 16, 1, 0);
	uint32_t key = 0, out[4], in[4] = { 1, 2, 3, 4 }, *value;
	struct pb_bpf_map m, other;
	pid_t pid;

	spec.types.spin_lock_off = 4;
	assert_int_equal(pb_bpf_map_create(&m, &spec), 0);
	assert_int_equal(pb_bpf_map_update_elem(&m, &key, in, BPF_F_LOCK), 0);
	assert_int_equal(pb_bpf_map_lookup_elem(&m, &key, out, BPF_F_LOCK), 0);
	assert_true(out[0] == 1 && out[1] == 0 && out[2] == 3 && out[3] == 4);
	/* the lock is held by this thread, and a thread can't wait for itself */
	value = m.ops->lookup(&m, &key, NULL);
	assert_int_equal(pb_bpf_map_lock(&m, value, (uint32_t)gettid()), 0);
	assert_int_equal(pb_bpf_map_lock(&m, value, (uint32_t)gettid()), -EBUSY);
	assert_int_equal(pb_bpf_map_update_elem(&m, &key, in, BPF_F_LOCK), -EBUSY);
	assert_int_equal(pb_bpf_map_lookup_elem(&m, &key, out, BPF_F_LOCK), -EBUSY);
	/* an update without F_LOCK doesn't change the lock */
	assert_int_equal(pb_bpf_map_update_elem(&m, &key, in, 0), 0);
	assert_int_not_equal(value[1], 0);
	pb_bpf_map_unlock(&m, value);
	assert_int_equal(value[1], 0);
	/* if the process that holds the lock has died, an update takes the lock over */
	pid = fork();
	if (!pid) {
		int fd = reopen(m.fd);

		if (fd < 0 || pb_bpf_map_attach(&other, fd, 3))
			_exit(1);
		pb_bpf_map_lock(&other, other.ops->lookup(&other, &key, NULL), (uint32_t)gettid());
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, NULL, 0);
	assert_int_not_equal(value[1], 0);
	assert_int_equal(pb_bpf_map_update_elem(&m, &key, in, BPF_F_LOCK), 0);
	assert_int_equal(value[1], 0);
	pb_bpf_map_close(&m);
}

/* ---- the rest ------------------------------------------------------------------------------ */

/* The map keeps keys that programs look up. The map evicts the oldest of the other keys. */
static void lru(void **state)
{
	struct pb_bpf_run run = { 0 };
	struct pb_bpf_map m;
	uint64_t value = 0;

	make(&m, BPF_MAP_TYPE_LRU_HASH, 8, 8, 10, 0);
	for (uint64_t key = 0; key < 10; key++)
		assert_int_equal(m.ops->update(&m, &key, &value, 0, &run), 0);
	for (uint64_t key = 0; key < 3; key++)
		assert_non_null(m.ops->lookup(&m, &key, &run));
	for (uint64_t key = 10; key < 15; key++)
		assert_int_equal(m.ops->update(&m, &key, &value, 0, &run), 0);
	for (uint64_t key = 0; key < 15; key++)
		assert_int_equal(!m.ops->lookup(&m, &key, NULL), key >= 3 && key < 8);
	pb_bpf_map_close(&m);
}

static void stacks(void **state)
{
	uint64_t ips[4] = { 1, 2, 3, 4 }, out[4];
	struct pb_bpf_map m;
	int64_t id;
	uint32_t key;

	make(&m, BPF_MAP_TYPE_STACK_TRACE, 4, 32, 1, 0);
	id = pb_bpf_stack_put(&m, ips, 3, 0, NULL);
	assert_int_equal(id, 0);
	key = (uint32_t)id;
	assert_int_equal(pb_bpf_stack_put(&m, ips, 3, 0, NULL), id);
	assert_int_equal(pb_bpf_map_lookup_elem(&m, &key, out, 0), 0);
	assert_true(out[0] == 1 && out[2] == 3 && out[3] == 0);
	assert_int_equal(pb_bpf_stack_put(&m, ips, 4, 0, NULL), -EEXIST);
	assert_int_equal(pb_bpf_stack_put(&m, ips, 4, BPF_F_REUSE_STACKID, NULL), 0);
	assert_int_equal(pb_bpf_map_lookup_elem(&m, &key, out, 0), 0);
	assert_int_equal(out[3], 4);
	assert_int_equal(pb_bpf_stack_put(&m, ips, 4, 1 << 20, NULL), -EINVAL);
	/* pretends that another thread is filling the slot: a put succeeds only if the slot already
	 * has the same stack */
	++*(uint64_t *)m.elems;
	assert_int_equal(pb_bpf_stack_put(&m, ips, 4, 0, NULL), id);
	assert_int_equal(pb_bpf_stack_put(&m, ips, 3, 0, NULL), -EBUSY);
	assert_int_equal(pb_bpf_map_lookup_elem(&m, &key, out, 0), -ENOENT);
	--*(uint64_t *)m.elems;
	assert_int_equal(pb_bpf_map_delete_elem(&m, &key), 0);
	assert_int_equal(pb_bpf_map_delete_elem(&m, &key), -ENOENT);
	pb_bpf_map_close(&m);
}

/* As in the kernel, the key after a removed key is the first key. */
static void stack_keys(void **state)
{
	uint32_t ids[4], nr = 0, next;
	struct pb_bpf_map m;
	uint64_t *word;

	make(&m, BPF_MAP_TYPE_STACK_TRACE, 4, 32, 16, 0);
	for (uint64_t ip = 1; ip < 20; ip++)
		pb_bpf_stack_put(&m, &ip, 1, 0, NULL);
	while (nr < 4 && !pb_bpf_map_get_next_key(&m, nr ? &ids[nr - 1] : NULL, &ids[nr]))
		nr++;
	assert_int_equal(nr, 4);
	assert_int_equal(pb_bpf_map_delete_elem(&m, &ids[2]), 0);
	assert_int_equal(pb_bpf_map_get_next_key(&m, &ids[1], &next), 0);
	assert_int_equal(next, ids[3]);
	assert_int_equal(pb_bpf_map_get_next_key(&m, &ids[2], &next), 0);
	assert_int_equal(next, ids[0]);
	/* a thread replaces the stack of a key: the iteration goes on after this key */
	word = (uint64_t *)(m.elems + ids[1] * m.elem_size);
	++*word;
	assert_int_equal(pb_bpf_map_get_next_key(&m, &ids[1], &next), 0);
	assert_int_equal(next, ids[3]);
	--*word;
	pb_bpf_map_close(&m);
}

static int one_of(void *arg, const void *data, uint64_t size)
{
	uint64_t *next = arg, v[2];

	assert_int_equal(size, 16);
	memcpy(v, data, 16);
	assert_int_equal(next[v[0]], v[1]);
	next[v[0]]++;
	return 0;
}

static void *produce(void *arg)
{
	struct worker *w = arg;

	for (uint64_t i = 0; i < ROUNDS; ) {
		uint64_t *record = pb_bpf_ringbuf_reserve(w->map, 16, 0);

		if (!record)
			continue;
		record[0] = w->cpu_slot;
		record[1] = i++;
		pb_bpf_ringbuf_submit(w->map, record, 0, false);
	}
	return NULL;
}

/* Records come in the order in which their producer wrote them. No record is lost. */
static void ring(void **state)
{
	struct worker w[3];
	uint64_t next[3] = { 0 };
	struct pb_bpf_map m, again;
	struct pb_bpf_map *maps[2] = { &again, &m };
	void *to;

	make(&m, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0);
	make(&again, BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
	for (uint32_t i = 0; i < 3; i++) {
		w[i] = (struct worker){ &m, i, 0 };
		pthread_create(&w[i].thread, NULL, produce, &w[i]);
	}
	while (next[0] + next[1] + next[2] < 3 * ROUNDS)
		assert_true(pb_bpf_ringbuf_consume(&m, one_of, next) >= 0);
	for (uint32_t i = 0; i < 3; i++)
		pthread_join(w[i].thread, NULL);
	assert_int_equal(pb_bpf_ringbuf_query(&m, BPF_RB_AVAIL_DATA), 0);
	/* checks limits, and discards a record */
	assert_null(pb_bpf_ringbuf_reserve(&m, 4096, 0));
	assert_null(pb_bpf_ringbuf_reserve(&m, 8, 1));
	to = pb_bpf_ringbuf_reserve(&m, 4080, 0);
	assert_non_null(to);
	memset(to, 1, 4080);		/* the record wraps around the ring's end, but its memory is
					 * contiguous */
	assert_ptr_equal(pb_bpf_ringbuf_of(maps, 2, to), &m);
	assert_null(pb_bpf_ringbuf_reserve(&m, 8, 0));
	assert_int_equal(pb_bpf_ringbuf_consume(&m, one_of, next), 0);
	pb_bpf_ringbuf_submit(&m, to, 0, true);
	assert_int_equal(pb_bpf_ringbuf_consume(&m, one_of, next), 0);
	assert_int_equal(pb_bpf_ringbuf_query(&m, BPF_RB_AVAIL_DATA), 0);
	pb_bpf_map_close(&m);
	pb_bpf_map_close(&again);
}

static void direct(void **state)
{
	uint32_t key = 1;
	uint64_t value = 0;
	struct pb_bpf_map m;

	make(&m, BPF_MAP_TYPE_ARRAY, 4, 8, 2, BPF_F_MMAPABLE);
	*(uint64_t *)((char *)m.ops->direct(&m, 0) + 8) = 7;
	assert_int_equal(pb_bpf_map_lookup_elem(&m, &key, &value, 0), 0);
	assert_int_equal(value, 7);
	assert_int_equal((uintptr_t)m.ops->direct(&m, 0) % 4096, 0);
	assert_null(m.ops->direct(&m, 8));
	pb_bpf_map_close(&m);
}

/* ---- maps of maps ------------------------------------------------------------------ */

/* inner[]: the map with id i is inner[i - 1] */
static struct pb_bpf_map inner[3];

static void *inner_of(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
	return kind == PB_BPF_OBJECT_MAP && id && id <= 3 ? &inner[id - 1] : NULL;
}

/* Another process writes ids into the block of a map of maps. A lookup finds only maps of the kind
 * for which the verifier has checked the program. */
static void inner_maps(void **state)
{
	static const uint32_t types[] = { BPF_MAP_TYPE_ARRAY_OF_MAPS, BPF_MAP_TYPE_HASH_OF_MAPS };
	const struct pb_bpf_objects objects = { .find = inner_of };

	make(&inner[0], BPF_MAP_TYPE_ARRAY, 4, 4096, 2, 0);
	make(&inner[1], BPF_MAP_TYPE_ARRAY, 4, 8, 2, 0);
	make(&inner[2], BPF_MAP_TYPE_HASH, 4, 4096, 2, 0);
	for (int k = 0; k < 2; k++) {
		struct pb_bpf_map_spec spec = spec_of(types[k], 4, 4, 8, 0);
		struct pb_bpf_map outer, other;
		struct pb_bpf_run run = { 0 };

		spec.inner = (struct pb_bpf_map_attr){ BPF_MAP_TYPE_ARRAY, 4, 4096, 2, 0 };
		assert_int_equal(pb_bpf_map_create(&outer, &spec), 0);
		outer.objects = &objects;
		/* as a hash or an array, the block takes any id */
		other = outer;
		other.ops = pb_bpf_map_ops_of(k ? BPF_MAP_TYPE_HASH : BPF_MAP_TYPE_ARRAY);
		for (uint32_t id = 0; id < 5; id++) {
			assert_int_equal(other.ops->update(&other, &id, &id, BPF_ANY, &run), 0);
			assert_ptr_equal(outer.ops->lookup(&outer, &id, &run),
					 id == 1 ? &inner[0] : NULL);
		}
		pb_bpf_map_close(&outer);
	}
	for (int i = 0; i < 3; i++)
		pb_bpf_map_close(&inner[i]);
}

/* ---- another process changes the block ------------------------------------------------- */

/* Between the mapping of a block and its opening, another process turns the map into a ring buffer,
 * whose data would have to be mapped twice. */
static void changed_before_it_is_open(void **state)
{
	struct pb_bpf_map m, view;
	struct pb_bpf_map_spec *spec;

	make(&m, BPF_MAP_TYPE_ARRAY, 4, 4096, 8, 0);
	spec = &m.head->spec;
	assert_int_equal(pb_bpf_map_open(&view, m.head, m.size, m.mapped), 0);
	spec->attr = (struct pb_bpf_map_attr){ BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0 };
	assert_int_equal(pb_bpf_map_open(&view, m.head, m.size, m.mapped), -EINVAL);
	spec->attr = (struct pb_bpf_map_attr){ BPF_MAP_TYPE_ARRAY, 4, 4096, 4, 0 };
	assert_int_equal(pb_bpf_map_open(&view, m.head, m.size, m.mapped), -EINVAL);
	pb_bpf_map_close(&m);
}

/* the first words of a trie's block after its header */
static struct { uint32_t guard, root, free, fresh, entries, pad[11], gone; } *volatile trie;

static void change_trie(int sig)
{
	trie->fresh = ~0u;
	trie->gone++;
}

static bool nobody_lives(const struct pb_bpf_map *map, uint32_t owner)
{
	return false;
}

#define SET_TRAP_FLAG	"pushf; orl $0x100, (%%rsp); popf"
#define CLEAR_TRAP_FLAG	"pushf; andl $~0x100, (%%rsp); popf"

/* After each instruction of an update, another process writes the number of the trie's nodes. The
 * update begins with a repair, because the lock's holder is dead. */
static void changed_in_a_repair(void **state)
{
	struct pb_bpf_map m;
	struct { uint32_t len; uint8_t data[4]; } key = { 32, { 1, 2, 3, 4 } };
	uint64_t value = 1;
	int err;

	make(&m, BPF_MAP_TYPE_LPM_TRIE, 8, 8, 4, BPF_F_NO_PREALLOC);
	m.alive = nobody_lives;
	trie = (void *)(m.head + 1);
	trie->guard = 1000u << 22 | 1;
	signal(SIGTRAP, change_trie);
	__asm__ volatile(SET_TRAP_FLAG : : : "memory", "cc");
	err = m.ops->update(&m, &key, &value, BPF_ANY, NULL);
	__asm__ volatile(CLEAR_TRAP_FLAG : : : "memory", "cc");
	signal(SIGTRAP, SIG_DFL);
	assert_true(!err || err == -ENOMEM);
	assert_int_equal(trie->guard, 0);
	pb_bpf_map_close(&m);
}

/* During a search for the next key, other processes remove nodes all the time. The search writes
 * the next key to the buffer from which it has read the key. */
static void changed_in_a_walk(void **state)
{
	struct { uint32_t len; uint8_t data[4]; } key = { 32, { 1 } };
	uint64_t value = 0;
	struct pb_bpf_map m;

	make(&m, BPF_MAP_TYPE_LPM_TRIE, 8, 8, 4, BPF_F_NO_PREALLOC);
	trie = (void *)(m.head + 1);
	for (key.data[3] = 4; key.data[3]--; )
		assert_int_equal(pb_bpf_map_update_elem(&m, &key, &value, BPF_ANY), 0);
	key.data[3] = 0;
	signal(SIGTRAP, change_trie);
	__asm__ volatile(SET_TRAP_FLAG : : : "memory", "cc");
	m.ops->next_key(&m, &key, &key);
	__asm__ volatile(CLEAR_TRAP_FLAG : : : "memory", "cc");
	signal(SIGTRAP, SIG_DFL);
	assert_int_equal(key.data[3], 1);
	pb_bpf_map_close(&m);
}

/* If the queue's lock is taken, a read of its values fails, and clears the buffer. */
static void locked_queue(void **state)
{
	struct pb_bpf_run run = { .thread = 7 };
	uint64_t value = 5;
	struct pb_bpf_map m;

	make(&m, BPF_MAP_TYPE_QUEUE, 0, 8, 4, 0);
	assert_int_equal(m.ops->push(&m, &value, 0, &run), 0);
	*(uint32_t *)(m.head + 1) = m.owner << 22 | run.thread;
	assert_int_equal(m.ops->peek(&m, &value, &run), -EBUSY);
	assert_int_equal(value, 0);
	value = 6;
	assert_int_equal(m.ops->pop(&m, &value, &run), -EBUSY);
	assert_int_equal(value, 0);
	pb_bpf_map_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_threads),
		cmocka_unit_test(cpu_slots), cmocka_unit_test(handlers), cmocka_unit_test(locks),
		cmocka_unit_test(lru), cmocka_unit_test(stacks), cmocka_unit_test(stack_keys),
		cmocka_unit_test(ring),
		cmocka_unit_test(direct), cmocka_unit_test(inner_maps),
		cmocka_unit_test(changed_before_it_is_open), cmocka_unit_test(changed_in_a_repair),
		cmocka_unit_test(changed_in_a_walk), cmocka_unit_test(locked_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
