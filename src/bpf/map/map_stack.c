/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * BPF_MAP_TYPE_STACK_TRACE: the id of a stack is the number of its bucket, which follows from the
 * stack's hash.
 *
 *   head | buckets: struct bucket, value_size / 8 addresses
 *
 * A bucket's word is {hash, generation, owner, state}. The thread that changes the state to BUSY
 * fills the bucket. If the word has changed during a read, the reader starts again. A thread may
 * find that its stack's bucket is BUSY and has the hash of its stack. Then the thread only returns
 * the id, because most likely another thread is storing the same stack. If the run that was filling
 * a BUSY bucket never goes on, pb_bpf_map_abandon() empties the bucket. If the process that was
 * filling a BUSY bucket has died, a thread of a process that has `alive` (map.h) takes the bucket
 * over and fills it. Other processes report the bucket, so that such a process empties it.
 */
#include "bpf/map/map_priv.h"
#include "bpf/map/map_stack.h"

enum { EMPTY, FULL, BUSY };	/* state: the low 2 bits of a word. Above them are 10 bits of the
				 * owner, 20 bits of the generation and 32 bits of the hash */
#define STATE(word)	((word) & 3)
#define OWNER(word)	((uint32_t)((word) >> 2 & 1023))
#define HASH(word)	((uint32_t)((word) >> 32))
#define MAX_TRIES	16

struct bucket {
	uint64_t word;
	uint32_t reserved, nr;
	uint64_t ip[];
};

/* Returns the word of the next generation, with this hash, no owner, and state EMPTY. */
static uint64_t next_generation(uint64_t word, uint32_t hash)
{
	return (uint64_t)hash << 32 | (((uint32_t)word & ~4095u) + 4096u);
}

/* Returns the number of bytes that one address takes in a value. */
static uint32_t unit(const struct pb_bpf_map_attr *a)
{
	return a->flags & BPF_F_STACK_BUILD_ID ? sizeof(struct bpf_stack_build_id) : 8;
}

static uint32_t nr_buckets(uint32_t max_entries)
{
	uint32_t nr = 1;

	while (nr < max_entries)
		nr *= 2;
	return nr;
}

static uint64_t stack_size(const struct pb_bpf_map_spec *s, int *err)
{
	const struct pb_bpf_map_attr *a = &s->attr;

	*err = a->flags & ~(uint32_t)(BPF_F_RDONLY | BPF_F_WRONLY | BPF_F_STACK_BUILD_ID) ||
	       !a->max_entries || a->key_size != 4 || a->value_size < 8 ||
	       a->value_size % unit(a) || a->value_size / unit(a) > PB_BPF_STACK_MOST ? -EINVAL :
	       a->max_entries > 1u << 30 ? -E2BIG : 0;
	return *err ? 0 : sizeof(struct pb_bpf_map_head) +
			  nr_buckets(a->max_entries) *
			  (sizeof(struct bucket) + (uint64_t)a->value_size);
}

static void stack_format(void *block)
{
}

static bool stack_open(struct pb_bpf_map *m)
{
	m->elems = (char *)(m->head + 1);
	m->elem_size = sizeof(struct bucket) + m->attr.value_size;
	m->nr_elems = nr_buckets(m->attr.max_entries);
	return true;
}

static struct bucket *bucket(const struct pb_bpf_map *m, uint32_t id)
{
	return id < m->nr_elems ? (struct bucket *)(m->elems + id * m->elem_size) : NULL;
}

static uint32_t key_of(const void *key)
{
	uint32_t id;

	__builtin_memcpy(&id, key, 4);
	return id;
}

/* ---- stores by programs -------------------------------------------------------------- */

static uint32_t hash_of(const uint64_t *ips, uint32_t nr)
{
	uint64_t h = nr;

	for (uint32_t i = 0; i < nr; i++) {
		h = (h ^ ips[i]) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 32;
	}
	return (uint32_t)(h ^ h >> 17);
}

static bool same(const struct bucket *b, uint64_t word, uint32_t hash, const uint64_t *ips,
		 uint32_t nr, uint64_t flags)
{
	if (STATE(word) == EMPTY || HASH(word) != hash)
		return false;
	/* while a thread fills the bucket, its addresses can't be compared, so the hash decides */
	if (STATE(word) == BUSY || flags & BPF_F_FAST_STACK_CMP)
		return true;
	return b->nr == nr && !memcmp(b->ip, ips, nr * 8ull);
}

static bool is_being_filled(const struct pb_bpf_map *m, uint64_t word)
{
	return STATE(word) == BUSY && !(m->alive && OWNER(word) && !m->alive(m, OWNER(word)));
}

/* Fills the bucket if it has this word. Returns false if the bucket isn't the caller's: its word
 * was another one, or a repair has mistaken this process for dead. */
static bool fill(struct pb_bpf_map *m, struct bucket *b, uint64_t word, uint64_t busy,
		 const uint64_t *ips, uint32_t nr, struct pb_bpf_run *run)
{
	bool done;

	pb_bpf_takes(m, b, busy, run);
	done = pb_replace(&b->word, &word, busy);
	if (done) {
		b->nr = nr;
		memcpy(b->ip, ips, nr * 8ull);
		done = pb_replace(&b->word, &busy, next_generation(busy, HASH(busy)) | FULL);
	}
	pb_bpf_gives(b, run);
	return done;
}

static int64_t put(struct pb_bpf_map *m, struct bucket *b, uint32_t hash, const uint64_t *ips,
		   uint32_t nr, uint64_t flags, struct pb_bpf_run *run)
{
	for (int tries = 0; tries < MAX_TRIES; tries++) {
		uint64_t word = pb_load(&b->word),
			busy = next_generation(word, hash) | (uint64_t)m->owner << 2 | BUSY;
		bool filling = is_being_filled(m, word);

		if (filling)
			pb_bpf_map_report(m, &b->word);
		if ((STATE(word) == FULL || filling) && same(b, word, hash, ips, nr, flags)) {
			if (pb_load(&b->word) == word)
				return 0;
			continue;
		}
		if (STATE(word) == FULL && !(flags & BPF_F_REUSE_STACKID))
			return -EEXIST;
		if (filling)
			return -EBUSY;
		if (fill(m, b, word, busy, ips, nr, run))
			return 0;
	}
	return -EBUSY;
}

int64_t pb_bpf_stack_put(struct pb_bpf_map *m, const uint64_t *ips, uint32_t nr, uint64_t flags,
			 struct pb_bpf_run *run)
{
	uint32_t most = m->attr.value_size / unit(&m->attr), hash, id;
	int64_t err;

	if (flags & ~(uint64_t)(BPF_F_SKIP_FIELD_MASK | BPF_F_USER_STACK | BPF_F_FAST_STACK_CMP |
				BPF_F_REUSE_STACKID))
		return -EINVAL;
	nr = nr < most ? nr : most;
	hash = hash_of(ips, nr);
	id = hash & (m->nr_elems - 1);
	err = put(m, bucket(m, id), hash, ips, nr, flags, run);
	return err ? err : id;
}

/* ---- from outside ---------------------------------------------------------------------- */

/* If the map is for build ids, writes addresses in place of the build ids, as the kernel does if it
 * knows no build id. */
static void out(const struct pb_bpf_map *m, char *value, const uint64_t *ips, uint32_t nr)
{
	uint32_t size = unit(&m->attr);

	memset(value, 0, m->attr.value_size);
	for (uint32_t i = 0; i < nr; i++) {
		struct bpf_stack_build_id id = { .status = BPF_STACK_BUILD_ID_IP, .ip = ips[i] };

		memcpy(value + i * (size_t)size, size == 8 ? (const void *)&ips[i] : &id, size);
	}
}

static int stack_read(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags)
{
	struct bucket *b = bucket(m, key_of(key));
	uint32_t nr;

	for (int tries = 0; b && tries < 1000; tries++) {
		uint64_t word = pb_load(&b->word);

		if (STATE(word) != FULL)
			return -ENOENT;
		nr = b->nr;
		if (nr > m->attr.value_size / unit(&m->attr))
			nr = m->attr.value_size / unit(&m->attr);
		out(m, value, b->ip, nr);
		if (pb_load(&b->word) == word)
			return 0;
	}
	return -ENOENT;
}

static int stack_remove(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	struct bucket *b = bucket(m, key_of(key));
	uint64_t word;

	if (!b)
		return -E2BIG;
	word = pb_load(&b->word);
	while (STATE(word) == FULL)
		if (pb_replace(&b->word, &word, next_generation(word, 0)))
			return 0;
	return -ENOENT;
}

static unsigned state_of(const struct pb_bpf_map *m, uint32_t id)
{
	return STATE(pb_load(&bucket(m, id)->word));
}

/* As in the kernel, begins again if the key has been removed. A thread may be replacing the key's
 * stack; then the key isn't removed. */
static int stack_next_key(struct pb_bpf_map *m, const void *key, void *next)
{
	uint32_t id = key ? key_of(key) : UINT32_MAX;

	id = id < m->nr_elems && state_of(m, id) != EMPTY ? id + 1 : 0;
	while (id < m->nr_elems && state_of(m, id) != FULL)
		id++;
	if (id >= m->nr_elems)
		return -ENOENT;
	__builtin_memcpy(next, &id, 4);
	return 0;
}

static int stack_take(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags)
{
	int err = stack_read(m, key, value, flags);

	return err ? err : stack_remove(m, key, NULL);
}

/* Empties the bucket whose word is at `at` if a dead process was filling it. */
static void stack_release(struct pb_bpf_map *m, void *at)
{
	uint64_t off = (uint64_t)((char *)at - m->elems), word;

	if ((char *)at < m->elems || off % m->elem_size || off / m->elem_size >= m->nr_elems)
		return;
	word = pb_load(at);
	if (STATE(word) == BUSY && !is_being_filled(m, word))
		pb_replace(at, &word, next_generation(word, 0));
}

/* Empties the bucket of a run that never goes on. Another thread of the process may have the same
 * word, if it began to store the same stack just after the run was about to do so. Then fill()
 * finds the bucket changed, and the thread begins again. */
static bool stack_abandon(struct pb_bpf_map *m, void *what, uint64_t word)
{
	struct bucket *b = what;

	pb_replace(&b->word, &word, next_generation(word, 0));
	return true;
}

const struct pb_bpf_map_ops pb_bpf_stack_trace_ops = {
	.size = stack_size, .format = stack_format, .open = stack_open, .lookup = pb_bpf_no_lookup,
	.update = pb_bpf_no_update, .remove = stack_remove, .next_key = stack_next_key,
	.each = pb_bpf_no_each,
	PB_BPF_NO_QUEUE, .read = stack_read, .write = pb_bpf_no_write, .take = stack_take,
	.release = stack_release, .abandon = stack_abandon,
};
