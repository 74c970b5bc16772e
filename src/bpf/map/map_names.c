/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of map types, as in bpftool. The table also has types that Patchbay doesn't support. */
#include "bpf/map/map_names.h"

#include <linux/bpf.h>

#include "base/base.h"

const char *pb_bpf_map_type_name(uint32_t type)
{
	static const char *const names[] = {
		[BPF_MAP_TYPE_HASH] = "hash",
		[BPF_MAP_TYPE_ARRAY] = "array",
		[BPF_MAP_TYPE_PROG_ARRAY] = "prog_array",
		[BPF_MAP_TYPE_PERF_EVENT_ARRAY] = "perf_event_array",
		[BPF_MAP_TYPE_PERCPU_HASH] = "percpu_hash",
		[BPF_MAP_TYPE_PERCPU_ARRAY] = "percpu_array",
		[BPF_MAP_TYPE_STACK_TRACE] = "stack_trace",
		[BPF_MAP_TYPE_CGROUP_ARRAY] = "cgroup_array",
		[BPF_MAP_TYPE_LRU_HASH] = "lru_hash",
		[BPF_MAP_TYPE_LRU_PERCPU_HASH] = "lru_percpu_hash",
		[BPF_MAP_TYPE_LPM_TRIE] = "lpm_trie",
		[BPF_MAP_TYPE_ARRAY_OF_MAPS] = "array_of_maps",
		[BPF_MAP_TYPE_HASH_OF_MAPS] = "hash_of_maps",
		[BPF_MAP_TYPE_DEVMAP] = "devmap",
		[BPF_MAP_TYPE_DEVMAP_HASH] = "devmap_hash",
		[BPF_MAP_TYPE_SOCKMAP] = "sockmap",
		[BPF_MAP_TYPE_CPUMAP] = "cpumap",
		[BPF_MAP_TYPE_XSKMAP] = "xskmap",
		[BPF_MAP_TYPE_SOCKHASH] = "sockhash",
		[BPF_MAP_TYPE_CGROUP_STORAGE] = "cgroup_storage",
		[BPF_MAP_TYPE_REUSEPORT_SOCKARRAY] = "reuseport_sockarray",
		[BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE] = "percpu_cgroup_storage",
		[BPF_MAP_TYPE_QUEUE] = "queue",
		[BPF_MAP_TYPE_STACK] = "stack",
		[BPF_MAP_TYPE_SK_STORAGE] = "sk_storage",
		[BPF_MAP_TYPE_STRUCT_OPS] = "struct_ops",
		[BPF_MAP_TYPE_RINGBUF] = "ringbuf",
		[BPF_MAP_TYPE_INODE_STORAGE] = "inode_storage",
		[BPF_MAP_TYPE_TASK_STORAGE] = "task_storage",
		[BPF_MAP_TYPE_BLOOM_FILTER] = "bloom_filter",
		[BPF_MAP_TYPE_USER_RINGBUF] = "user_ringbuf",
	};

	return type < pb_array_size(names) && names[type] ? names[type] : "unknown";
}
