/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums up the time that threads wait for conditions, by thread and stack. */
#include "../tool.h"

const volatile u64 min_block_ns = 1;
const volatile u64 max_block_ns = -1;

struct key {
	u32 tid;
	int stack;
};

struct value {
	u64 count, ns;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u64);
} starts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(key_size, sizeof(u32));
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct key);
	__type(value, struct value);
} blocked SEC(".maps");

SEC("uprobe/locks:wait_for_more") int BPF_KPROBE(on_wait)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	u64 now = bpf_ktime_get_ns();

	bpf_map_update_elem(&starts, &tid, &now, BPF_ANY);
	return 0;
}

SEC("uretprobe/locks:wait_for_more") int BPF_KRETPROBE(on_waited)
{
	struct key key = { .tid = (u32)bpf_get_current_pid_tgid() };
	u64 *start = bpf_map_lookup_elem(&starts, &key.tid), delta;
	struct value *v, first;

	if (!start)
		return 0;
	delta = bpf_ktime_get_ns() - *start;
	bpf_map_delete_elem(&starts, &key.tid);
	if (delta < min_block_ns || delta > max_block_ns)
		return 0;
	key.stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
	v = bpf_map_lookup_elem(&blocked, &key);
	if (!v) {
		__builtin_memset(&first, 0, sizeof(first));
		bpf_get_current_comm(first.comm, sizeof(first.comm));
		bpf_map_update_elem(&blocked, &key, &first, BPF_NOEXIST);
		v = bpf_map_lookup_elem(&blocked, &key);
	}
	if (v) {
		__sync_fetch_and_add(&v->count, 1);
		__sync_fetch_and_add(&v->ns, delta);
	}
	return 0;
}
