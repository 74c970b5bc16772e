/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Access to maps from outside of programs: checks rights and flags, then calls the type's
 * operation. */
#include "bpf/map/map_priv.h"
#include "bpf/map/map_sys.h"

bool pb_bpf_map_is_hash(const struct pb_bpf_map *m)
{
	switch (m->attr.type) {
	case BPF_MAP_TYPE_HASH:
	case BPF_MAP_TYPE_PERCPU_HASH:
	case BPF_MAP_TYPE_LRU_HASH:
	case BPF_MAP_TYPE_LRU_PERCPU_HASH:
	case BPF_MAP_TYPE_HASH_OF_MAPS:
		return true;
	default:
		return false;
	}
}

static bool is_queue(const struct pb_bpf_map *m)
{
	return m->attr.type == BPF_MAP_TYPE_QUEUE || m->attr.type == BPF_MAP_TYPE_STACK;
}

uint64_t pb_bpf_map_value_size(const struct pb_bpf_map *m)
{
	switch (m->attr.type) {
	case BPF_MAP_TYPE_PERCPU_ARRAY:
	case BPF_MAP_TYPE_PERCPU_HASH:
	case BPF_MAP_TYPE_LRU_PERCPU_HASH:
		return (uint64_t)m->value_room * m->cpu_slots;
	default:
		return m->attr.value_size;
	}
}

static bool may(struct pb_bpf_map *m, uint32_t what)
{
	uint32_t access = m->access;

	if (!m->frozen && pb_load32(&m->head->frozen))
		m->frozen = true;
	if (m->frozen)
		access &= ~(uint32_t)PB_BPF_MAP_WRITE;
	return (access & what) == what;
}

static bool key_given(const struct pb_bpf_map *m, const void *key)
{
	return !m->attr.key_size == !key;
}

static bool lock_missing(const struct pb_bpf_map *m, uint64_t flags)
{
	return flags & BPF_F_LOCK && m->types.spin_lock_off < 0;
}

int pb_bpf_map_lookup_elem(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags)
{
	if (flags & ~(uint64_t)BPF_F_LOCK)
		return -EINVAL;
	if (!may(m, PB_BPF_MAP_READ))
		return -EPERM;
	if (lock_missing(m, flags) || !key_given(m, key))
		return -EINVAL;
	return is_queue(m) ? m->ops->peek(m, value, NULL) : m->ops->read(m, key, value, flags);
}

static int update(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags)
{
	return is_queue(m) ? m->ops->push(m, value, flags, NULL) :
	       m->ops->write(m, key, value, flags);
}

int pb_bpf_map_update_elem(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags)
{
	if (!may(m, PB_BPF_MAP_WRITE))
		return -EPERM;
	if (lock_missing(m, flags) || !key_given(m, key))
		return -EINVAL;
	return update(m, key, value, flags);
}

int pb_bpf_map_delete_elem(struct pb_bpf_map *m, const void *key)
{
	if (!may(m, PB_BPF_MAP_WRITE))
		return -EPERM;
	if (!key_given(m, key))
		return -EINVAL;
	return m->ops->remove(m, key, NULL);
}

int pb_bpf_map_get_next_key(struct pb_bpf_map *m, const void *key, void *next)
{
	if (!may(m, PB_BPF_MAP_READ))
		return -EPERM;
	if (key && !m->attr.key_size)
		return -EINVAL;
	return m->ops->next_key(m, key, next);
}

int pb_bpf_map_lookup_and_delete_elem(struct pb_bpf_map *m, const void *key, void *value,
				      uint64_t flags)
{
	if (flags & ~(uint64_t)BPF_F_LOCK)
		return -EINVAL;
	if (!may(m, PB_BPF_MAP_READ | PB_BPF_MAP_WRITE))
		return -EPERM;
	if ((flags && is_queue(m)) || lock_missing(m, flags) || !key_given(m, key))
		return -EINVAL;
	return is_queue(m) ? m->ops->pop(m, value, NULL) : m->ops->take(m, key, value, flags);
}

int pb_bpf_map_freeze(struct pb_bpf_map *m)
{
	uint32_t was = 0;

	if (m->special)
		return -PB_BPF_ENOTSUPP;
	if (!may(m, PB_BPF_MAP_WRITE))
		return -EPERM;
	m->frozen = true;
	return pb_replace32(&m->head->frozen, &was, 1) ? 0 : -EBUSY;
}

/* ---- batches -------------------------------------------------------------------- */

enum batch { LOOKUP = 1, TAKE = 2, UPDATE = 4, DELETE = 8 };

static uint32_t batches(const struct pb_bpf_map *m)
{
	switch (m->attr.type) {
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
	case BPF_MAP_TYPE_ARRAY_OF_MAPS:
		return LOOKUP | UPDATE;
	case BPF_MAP_TYPE_LPM_TRIE:
		return LOOKUP | UPDATE | DELETE;
	default:
		return pb_bpf_map_is_hash(m) ? LOOKUP | TAKE | UPDATE | DELETE : 0;
	}
}

static int batch_begin(struct pb_bpf_map *m, const struct pb_bpf_map_batch *b, uint32_t what)
{
	uint32_t rights = what == LOOKUP ? PB_BPF_MAP_READ :
			  what == TAKE ? PB_BPF_MAP_READ | PB_BPF_MAP_WRITE : PB_BPF_MAP_WRITE;

	if (!may(m, rights))
		return -EPERM;
	if (!(batches(m) & what))
		return -PB_BPF_ENOTSUPP;
	if (b->elem_flags & ~(uint64_t)BPF_F_LOCK || lock_missing(m, b->elem_flags) ||
	    (pb_bpf_map_is_hash(m) && what & (LOOKUP | TAKE) && b->flags))
		return -EINVAL;
	return 0;
}

static int hash_batch(struct pb_bpf_map *m, const struct pb_bpf_map_batch *b, bool take)
{
	uint32_t batch = 0;
	int err;

	if (b->in)
		memcpy(&batch, b->in, 4);
	if (!*b->count)
		return 0;
	if (batch > m->mask) {
		*b->count = 0;
		return -ENOENT;
	}
	err = pb_bpf_hash_batch(m, &batch, b->keys, b->values, b->count, b->elem_flags, take);
	memcpy(b->out, &batch, 4);
	return err;
}

static int walk_batch(struct pb_bpf_map *m, const struct pb_bpf_map_batch *b)
{
	uint64_t value_size = pb_bpf_map_value_size(m);
	uint32_t most = *b->count, done = 0;
	/* number of empty slots, and of keys that were deleted before they could be read */
	uint64_t missed = 0, most_missed = 2ull * m->attr.max_entries + 1000;
	const void *prev = b->in;
	char *key = b->keys;
	int err = 0;

	for (*b->count = 0; done < most; ) {
		err = m->ops->next_key(m, prev, key);
		if (err)
			break;
		prev = key;
		err = m->ops->read(m, key, (char *)b->values + done * value_size, b->elem_flags);
		if (err == -ENOENT) {
			/* The key isn't counted, so the next key will overwrite it in `keys`.
			 * next_key() reads the old key through `prev` before it writes the next
			 * key. */
			err = ++missed < most_missed ? 0 : -EINTR;
			if (!err)
				continue;
		}
		if (err)
			return err;
		done++;
		memcpy(b->out, key, m->attr.key_size);
		key += m->attr.key_size;
		prev = b->out;
	}
	*b->count = done;
	return err;
}

int pb_bpf_map_lookup_batch(struct pb_bpf_map *m, const struct pb_bpf_map_batch *b)
{
	int err = batch_begin(m, b, LOOKUP);

	if (err)
		return err;
	return pb_bpf_map_is_hash(m) ? hash_batch(m, b, false) : walk_batch(m, b);
}

int pb_bpf_map_lookup_and_delete_batch(struct pb_bpf_map *m, const struct pb_bpf_map_batch *b)
{
	int err = batch_begin(m, b, TAKE);

	return err ? err : hash_batch(m, b, true);
}

int pb_bpf_map_update_batch(struct pb_bpf_map *m, const struct pb_bpf_map_batch *b)
{
	int err = batch_begin(m, b, UPDATE);
	uint64_t value_size = pb_bpf_map_value_size(m);
	uint32_t done = 0;

	if (err)
		return err;
	for (; !err && done < *b->count; done += !err)
		err = update(m, (char *)b->keys + (uint64_t)done * m->attr.key_size,
			     (char *)b->values + done * value_size, b->elem_flags);
	*b->count = done;
	return err;
}

int pb_bpf_map_delete_batch(struct pb_bpf_map *m, const struct pb_bpf_map_batch *b)
{
	int err = batch_begin(m, b, DELETE);
	uint32_t done = 0;

	if (err)
		return err;
	for (; !err && done < *b->count; done += !err)
		err = m->ops->remove(m, (char *)b->keys + (uint64_t)done * m->attr.key_size, NULL);
	*b->count = done;
	return err;
}
