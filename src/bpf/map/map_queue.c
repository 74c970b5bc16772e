/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * BPF_MAP_TYPE_QUEUE and STACK.
 *
 *   head | struct queue_top | values
 *
 * Values lie in a ring of slots. One word, `ends`, has the slot of the oldest value and the number
 * of values. So each change takes effect by one store of `ends`. If a process dies before this
 * store, it has changed nothing. The ring has one slot more than the map can have values. If the
 * map is full, the value that replaces the oldest one is written to this slot. A lock serialises
 * operations. If the map has `alive` (map.h), a thread can take the lock from a process that died.
 * A signal handler that interrupted the lock's holder gets -EBUSY.
 */
#include "bpf/map/map_priv.h"

struct queue_top {
	uint32_t guard, pad0[15];
	uint64_t ends;		/* {count, first}: the number of values, and the slot of the oldest
				 * value */
	uint64_t pad1[7];
};

static struct queue_top *top(const struct pb_bpf_map *m)
{
	return (struct queue_top *)(m->head + 1);
}

static uint64_t nr_slots(const struct pb_bpf_map_attr *a)
{
	return (uint64_t)a->max_entries + 1;
}

static char *slot(const struct pb_bpf_map *m, uint64_t i)
{
	return m->elems + i % nr_slots(&m->attr) * m->elem_size;
}

static uint64_t queue_size(const struct pb_bpf_map_spec *s, int *err)
{
	const struct pb_bpf_map_attr *a = &s->attr;

	*err = !a->max_entries || a->key_size || !a->value_size ||
	       a->flags & ~(uint32_t)PB_BPF_ACCESS_FLAGS || !pb_bpf_access_ok(a->flags) ? -EINVAL :
	       a->value_size > PB_BPF_MAX_VALUE ? -E2BIG : 0;
	return *err ? 0 : sizeof(struct pb_bpf_map_head) + sizeof(struct queue_top) +
			  nr_slots(a) * pb_align_up(a->value_size, 8u);
}

static void queue_format(void *block)
{
}

static bool queue_open(struct pb_bpf_map *m)
{
	m->elems = (char *)(top(m) + 1);
	m->elem_size = m->value_room;
	return true;
}

/* Reads `ends`. Another process may have written anything into `ends`, so this function limits both
 * numbers. */
static void ends(const struct pb_bpf_map *m, uint32_t *first, uint32_t *count)
{
	uint64_t word = pb_load(&top(m)->ends);

	*first = (uint32_t)((uint32_t)word % nr_slots(&m->attr));
	*count = (uint32_t)(word >> 32);
	if (*count > m->attr.max_entries)
		*count = m->attr.max_entries;
}

static void set_ends(const struct pb_bpf_map *m, uint64_t first, uint32_t count)
{
	__atomic_store_n(&top(m)->ends, first % nr_slots(&m->attr) | (uint64_t)count << 32,
			 __ATOMIC_RELEASE);
}

static int queue_push(struct pb_bpf_map *m, const void *value, uint64_t flags,
		      struct pb_bpf_run *run)
{
	uint32_t first, count;
	bool full;
	int err;

	if (flags & BPF_NOEXIST || flags > BPF_EXIST)
		return -EINVAL;
	err = pb_bpf_guard_take(m, &top(m)->guard, run);
	if (err < 0)
		return err;
	ends(m, &first, &count);
	full = count == m->attr.max_entries;
	err = full && !(flags & BPF_EXIST) ? -E2BIG : 0;
	if (!err) {
		memcpy(slot(m, (uint64_t)first + count), value, m->attr.value_size);
		set_ends(m, (uint64_t)first + full, count + !full);
	}
	pb_bpf_guard_give(&top(m)->guard, run);
	return err;
}

/* Gets the oldest value of a queue, or the newest of a stack. */
static int get(struct pb_bpf_map *m, void *value, bool remove, struct pb_bpf_run *run)
{
	bool stack = m->attr.type == BPF_MAP_TYPE_STACK;
	uint32_t first, count;
	int err = pb_bpf_guard_take(m, &top(m)->guard, run);

	if (err < 0) {
		memset(value, 0, m->attr.value_size);
		return err;
	}
	ends(m, &first, &count);
	if (count) {
		memcpy(value, slot(m, (uint64_t)first + (stack ? count - 1 : 0)),
		       m->attr.value_size);
		if (remove)
			set_ends(m, (uint64_t)first + !stack, count - 1);
	} else {
		memset(value, 0, m->attr.value_size);
	}
	pb_bpf_guard_give(&top(m)->guard, run);
	return count ? 0 : -ENOENT;
}

static int queue_pop(struct pb_bpf_map *m, void *value, struct pb_bpf_run *run)
{
	return get(m, value, true, run);
}

static int queue_peek(struct pb_bpf_map *m, void *value, struct pb_bpf_run *run)
{
	return get(m, value, false, run);
}

static void queue_repair(struct pb_bpf_map *m, uint32_t dead)
{
	if (pb_bpf_guard_take_over(m, &top(m)->guard, dead))
		pb_bpf_guard_give(&top(m)->guard, NULL);
}

const struct pb_bpf_map_ops pb_bpf_queue_ops = {
	.size = queue_size, .format = queue_format, .open = queue_open, .lookup = pb_bpf_no_lookup,
	.update = pb_bpf_no_update, .remove = pb_bpf_no_remove, .next_key = pb_bpf_no_next_key,
	.push = queue_push, .pop = queue_pop, .peek = queue_peek, .each = pb_bpf_no_each,
	.read = pb_bpf_no_read, .write = pb_bpf_no_write, .take = pb_bpf_no_take,
	.repair = queue_repair,
};
