/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Measures a garbage collector's pauses, for each thread. gc_begin() begins a pause, and gc_end()
 * ends the pause. */
#include "../tool.h"

const volatile u64 min_us = 2000;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, u64);
} generations SEC(".maps");

struct begin {
	u64 ns;
	u32 generation;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, struct begin);
} begins SEC(".maps");

struct event {
	u64 us;
	u32 tid, generation, freed;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(int));
	__uint(value_size, sizeof(int));
} pauses SEC(".maps");

SEC("uprobe/requests:gc_begin") int BPF_KPROBE(on_begin, u32 generation)
{
	struct begin b = { .ns = bpf_ktime_get_ns(), .generation = generation };
	u32 tid = (u32)bpf_get_current_pid_tgid();

	bpf_map_update_elem(&begins, &tid, &b, BPF_ANY);
	return 0;
}

SEC("uprobe/requests:gc_end") int BPF_KPROBE(on_end, u32 generation, u32 freed)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct begin *b = bpf_map_lookup_elem(&begins, &tid);
	struct event e;
	u64 one = 1, *n;

	if (!b || b->generation != generation)
		return 0;
	__builtin_memset(&e, 0, sizeof(e));
	e.us = (bpf_ktime_get_ns() - b->ns) / 1000;
	e.tid = tid;
	e.generation = generation;
	e.freed = freed;
	n = bpf_map_lookup_elem(&generations, &generation);
	if (n)
		*n += 1;
	else
		bpf_map_update_elem(&generations, &generation, &one, BPF_ANY);
	if (e.us >= min_us)
		bpf_perf_event_output(ctx, &pauses, BPF_F_CURRENT_CPU, &e, sizeof(e));
	bpf_map_delete_elem(&begins, &tid);
	return 0;
}
