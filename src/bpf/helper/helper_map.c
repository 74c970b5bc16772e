/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers for maps, loops, locks and kptrs. */
#include "bpf/helper/helper_priv.h"

#define MAX_LOOPS	(8 * 1024 * 1024)

/* r2 key */
PB_BPF_HELPER(map_lookup_elem)
{
	struct pb_bpf_map *map = PB_BPF_PTR(r1);

	return (uint64_t)map->ops->lookup(map, PB_BPF_PTR(r2), run);
}

/* r2 key, r3 value, r4 flags */
PB_BPF_HELPER(map_update_elem)
{
	struct pb_bpf_map *map = PB_BPF_PTR(r1);

	return (uint64_t)(int64_t)map->ops->update(map, PB_BPF_PTR(r2), PB_BPF_PTR(r3), r4, run);
}

/* r2 key */
PB_BPF_HELPER(map_delete_elem)
{
	struct pb_bpf_map *map = PB_BPF_PTR(r1);

	return (uint64_t)(int64_t)map->ops->remove(map, PB_BPF_PTR(r2), run);
}

/* r2 value, r3 flags */
PB_BPF_HELPER(map_push_elem)
{
	struct pb_bpf_map *map = PB_BPF_PTR(r1);

	return (uint64_t)(int64_t)map->ops->push(map, PB_BPF_PTR(r2), r3, run);
}

/* r2 buffer for the value */
PB_BPF_HELPER(map_pop_elem)
{
	struct pb_bpf_map *map = PB_BPF_PTR(r1);

	return (uint64_t)(int64_t)map->ops->pop(map, PB_BPF_PTR(r2), run);
}

PB_BPF_HELPER(map_peek_elem)
{
	struct pb_bpf_map *map = PB_BPF_PTR(r1);

	return (uint64_t)(int64_t)map->ops->peek(map, PB_BPF_PTR(r2), run);
}

/* r2 key, r3 processor; returns the value in the processor's per-CPU slot */
PB_BPF_HELPER(map_lookup_percpu_elem)
{
	struct pb_bpf_map *map = PB_BPF_PTR(r1);
	struct pb_bpf_run other = *run;

	if ((uint32_t)r3 >= map->cpu_slots)
		return 0;
	other.cpu_slot = (uint32_t)r3;
	return (uint64_t)map->ops->lookup(map, PB_BPF_PTR(r2), &other);
}

struct callback {
	struct pb_bpf_run *run;
	uint64_t func, ctx;
};

static int64_t call_for(void *arg, struct pb_bpf_map *map, const void *key, void *value)
{
	const struct callback *c = arg;

	return (int64_t)pb_bpf_call_back(c->run, c->func, (uint64_t)map, (uint64_t)key,
					 (uint64_t)value, c->ctx, 0);
}

/* r2 callback, r3 its context, r4 flags */
PB_BPF_HELPER(for_each_map_elem)
{
	struct pb_bpf_map *map = PB_BPF_PTR(r1);
	struct callback c = { run, r2, r3 };

	return r4 ? PB_BPF_ERR(EINVAL) : (uint64_t)map->ops->each(map, call_for, &c, run);
}

/* r1 iterations, r2 callback, r3 its context, r4 flags */
PB_BPF_HELPER(loop)
{
	uint32_t nr = (uint32_t)r1;

	if (r4)
		return PB_BPF_ERR(EINVAL);
	if (nr > MAX_LOOPS)
		return PB_BPF_ERR(E2BIG);
	for (uint32_t i = 0; i < nr; i++)
		if (pb_bpf_call_back(run, r2, i, r3, 0, 0, 0))
			return i + 1;
	return nr;
}

/* Returns the map whose block contains the lock at address `at`. NULL: none of the program's maps
 * contains it. */
static struct pb_bpf_map *map_around(const struct pb_bpf_run *run, uint64_t at)
{
	for (uint32_t i = 0; i < run->prog->nr_maps; i++) {
		struct pb_bpf_map *m = run->prog->maps[i];

		if (at - (uint64_t)m->head < m->size)
			return m;
	}
	return NULL;
}

/*
 * r1 the lock's address. Sometimes the helper can't take the lock, for example in a signal handler
 * that has interrupted the lock's holder. It can't report this, because it returns nothing. So the
 * program continues without the lock, and spin_unlock does nothing.
 */
PB_BPF_HELPER(spin_lock)
{
	struct pb_bpf_map *map = map_around(run, r1);
	char *value = map ? (char *)r1 - map->types.spin_lock_off : NULL;

	run->lock_missed = !map || pb_bpf_value_lock(map, value, run);
	return 0;
}

PB_BPF_HELPER(spin_unlock)
{
	struct pb_bpf_map *map = map_around(run, r1);
	char *value = map ? (char *)r1 - map->types.spin_lock_off : NULL;

	if (!run->lock_missed && map)
		pb_bpf_value_unlock(map, value, run);
	return 0;
}

/* r1 the kptr's address, r2 the new pointer; returns the old pointer */
PB_BPF_HELPER(kptr_xchg)
{
	return __atomic_exchange_n((uint64_t *)PB_BPF_PTR(r1), r2, __ATOMIC_SEQ_CST);
}
