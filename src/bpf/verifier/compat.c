/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks whether a helper may take a map, by the map's type. Each row allows one helper for one map
 * type. M in a row: a map of this type may be passed only to helpers that have a row for this type.
 * H in a row: this helper may take only map types for which it has a row. A row may have M and H.
 */
#include "bpf/verifier/env.h"
#include "bpf/verifier/helper_call.h"
#include "bpf/verifier/log.h"

enum { M = 1, H = 2 };

#define ROW(map, helper, restricts) { BPF_MAP_TYPE_##map, BPF_FUNC_##helper, restricts }
static const struct {
	uint8_t map;
	uint16_t helper;
	uint8_t restricts;
} rows[] = {
	ROW(PROG_ARRAY, tail_call, M | H),
	ROW(PERF_EVENT_ARRAY, perf_event_read, M | H),
	ROW(PERF_EVENT_ARRAY, perf_event_output, M | H),
	ROW(PERF_EVENT_ARRAY, perf_event_read_value, M | H),
	ROW(PERF_EVENT_ARRAY, skb_output, M | H),
	ROW(PERF_EVENT_ARRAY, xdp_output, M | H),
	ROW(RINGBUF, ringbuf_output, M | H),
	ROW(RINGBUF, ringbuf_reserve, M | H),
	ROW(RINGBUF, ringbuf_query, M | H),
	ROW(RINGBUF, ringbuf_reserve_dynptr, M | H),
	ROW(RINGBUF, ringbuf_submit_dynptr, M | H),
	ROW(RINGBUF, ringbuf_discard_dynptr, M | H),
	ROW(USER_RINGBUF, user_ringbuf_drain, M | H),
	ROW(STACK_TRACE, get_stackid, M | H),
	ROW(CGROUP_ARRAY, skb_under_cgroup, M | H),
	ROW(CGROUP_ARRAY, current_task_under_cgroup, M | H),
	ROW(CGROUP_STORAGE, get_local_storage, M | H),
	ROW(PERCPU_CGROUP_STORAGE, get_local_storage, M | H),
	ROW(DEVMAP, redirect_map, M | H),
	ROW(DEVMAP, map_lookup_elem, M),
	ROW(DEVMAP_HASH, redirect_map, M | H),
	ROW(DEVMAP_HASH, map_lookup_elem, M),
	ROW(CPUMAP, redirect_map, M | H),
	ROW(XSKMAP, redirect_map, M | H),
	ROW(XSKMAP, map_lookup_elem, M),
	ROW(ARRAY_OF_MAPS, map_lookup_elem, M),
	ROW(HASH_OF_MAPS, map_lookup_elem, M),
	ROW(SOCKMAP, sk_redirect_map, M | H),
	ROW(SOCKMAP, sock_map_update, M | H),
	ROW(SOCKMAP, msg_redirect_map, M | H),
	ROW(SOCKMAP, sk_select_reuseport, M | H),
	ROW(SOCKMAP, map_lookup_elem, M),
	ROW(SOCKMAP, map_update_elem, M),
	ROW(SOCKMAP, map_delete_elem, M),
	ROW(SOCKHASH, sk_redirect_hash, M | H),
	ROW(SOCKHASH, sock_hash_update, M | H),
	ROW(SOCKHASH, msg_redirect_hash, M | H),
	ROW(SOCKHASH, sk_select_reuseport, M | H),
	ROW(SOCKHASH, map_lookup_elem, M),
	ROW(SOCKHASH, map_update_elem, M),
	ROW(SOCKHASH, map_delete_elem, M),
	ROW(REUSEPORT_SOCKARRAY, sk_select_reuseport, M | H),
	ROW(QUEUE, map_peek_elem, M | H),
	ROW(QUEUE, map_pop_elem, M | H),
	ROW(QUEUE, map_push_elem, M | H),
	ROW(STACK, map_peek_elem, M | H),
	ROW(STACK, map_pop_elem, M | H),
	ROW(STACK, map_push_elem, M | H),
	ROW(BLOOM_FILTER, map_peek_elem, M | H),
	ROW(BLOOM_FILTER, map_push_elem, M | H),
	ROW(SK_STORAGE, sk_storage_get, M | H),
	ROW(SK_STORAGE, sk_storage_delete, M | H),
	ROW(INODE_STORAGE, inode_storage_get, M | H),
	ROW(INODE_STORAGE, inode_storage_delete, M | H),
	ROW(TASK_STORAGE, task_storage_get, M | H),
	ROW(TASK_STORAGE, task_storage_delete, M | H),
	ROW(PERCPU_ARRAY, map_lookup_percpu_elem, H),
	ROW(PERCPU_HASH, map_lookup_percpu_elem, H),
	ROW(LRU_PERCPU_HASH, map_lookup_percpu_elem, H),
};

/* Programs of only three types may change a sockmap by map_update_elem or map_delete_elem. If the
 * program has another type, logs the reason and returns true. */
static bool sock_update_elsewhere(struct env *env, uint32_t map, int32_t id)
{
	uint32_t type = env->v->type->type;

	if ((map != BPF_MAP_TYPE_SOCKMAP && map != BPF_MAP_TYPE_SOCKHASH) ||
	    (id != BPF_FUNC_map_update_elem && id != BPF_FUNC_map_delete_elem) ||
	    type == BPF_PROG_TYPE_SOCKET_FILTER || type == BPF_PROG_TYPE_SCHED_CLS ||
	    type == BPF_PROG_TYPE_XDP)
		return false;
	log(env, "cannot update sockmap in this context\n");
	return true;
}

int pbv_check_map_helper(struct env *env, const struct pb_bpf_map *map, int32_t id)
{
	unsigned restricted = 0, allowed = 0;
	uint32_t type;

	if (!map)
		return 0;
	type = map->attr.type;
	for (size_t i = 0; i < pb_array_size(rows); i++) {
		bool is_map = rows[i].map == type, is_helper = rows[i].helper == (uint32_t)id;

		restricted |= (is_map ? rows[i].restricts & M : 0u) |
			      (is_helper ? rows[i].restricts & H : 0u);
		if (is_map && is_helper)
			allowed |= rows[i].restricts;
	}
	if (!(restricted & ~allowed) && !sock_update_elsewhere(env, type, id))
		return 0;
	return refuse(env, EINVAL, "cannot pass map_type %d into func %s#%d\n", (int)type,
		      pbv_helper_name(id), (int)id);
}
