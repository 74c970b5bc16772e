/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts the callers of a function by return address, in an LRU map. Also copies a stack of raw
 * addresses with bpf_get_stack(). */
#include "../tool.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, u64);
} callers SEC(".maps");

/* the map has room for fewer elements than there are keys; old keys are evicted without an error */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, u64);
} arguments SEC(".maps");

u64 refused, hits, copied;
u64 last_stack[8];

SEC("uprobe/calls:leaf") int BPF_KPROBE(on_leaf, u32 v)
{
	u64 from = 0, one = 1, *n;

	__sync_fetch_and_add(&hits, 1);
	bpf_probe_read_user(&from, sizeof(from), (void *)PT_REGS_SP(ctx));
	count_in(&callers, &from, 1);
	n = bpf_map_lookup_elem(&arguments, &v);
	if (n)
		*n += 1;
	else if (bpf_map_update_elem(&arguments, &v, &one, BPF_ANY))
		__sync_fetch_and_add(&refused, 1);
	if (bpf_get_stack(ctx, last_stack, sizeof(last_stack), BPF_F_USER_STACK) > 0)
		__sync_fetch_and_add(&copied, 1);
	return 0;
}
