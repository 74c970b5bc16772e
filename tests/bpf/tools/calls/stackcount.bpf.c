/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts calls of a function by stack. User space sets the maximal depth and the maximal number of
 * stacks. */
#include "../tool.h"

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(key_size, sizeof(u32));
} stacks SEC(".maps");

struct key {
	u32 tgid;
	s64 stack;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct key);
	__type(value, u64);
} counts SEC(".maps");

u64 lost;

SEC("uprobe/calls:leaf") int BPF_KPROBE(on_leaf)
{
	struct key key;

	__builtin_memset(&key, 0, sizeof(key));
	key.tgid = bpf_get_current_pid_tgid() >> 32;
	key.stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
	if (key.stack < 0) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	count_in(&counts, &key, 1);
	return 0;
}

/* The callers have return probes. Even so, stacks must show the program's own return addresses. */
u64 returns;

SEC("uretprobe/calls:left") int BPF_KRETPROBE(on_left)
{
	__sync_fetch_and_add(&returns, 1);
	return 0;
}

SEC("uretprobe/calls:both") int BPF_KRETPROBE(on_both)
{
	__sync_fetch_and_add(&returns, 1);
	return 0;
}
