/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports queries that take longer than a threshold. */
#include "../tool.h"

const volatile u64 min_ns = 10000000;
const volatile u64 max_ns = 0;

struct start {
	u64 ns;
	char text[48];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, struct start);
} starts SEC(".maps");

struct event {
	u64 ns;
	u32 tid;
	char text[48];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} events SEC(".maps");

u64 quick, slow;

SEC("uprobe/requests:query") int BPF_KPROBE(on_query, const char *text)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct start s = { .ns = bpf_ktime_get_ns() };

	bpf_probe_read_user_str(s.text, sizeof(s.text), text);
	bpf_map_update_elem(&starts, &tid, &s, BPF_ANY);
	return 0;
}

SEC("uretprobe/requests:query") int BPF_KRETPROBE(on_queried)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct start *s = bpf_map_lookup_elem(&starts, &tid);
	struct event e = { .tid = tid };

	if (!s)
		return 0;
	e.ns = bpf_ktime_get_ns() - s->ns;
	if (e.ns < min_ns || (max_ns && e.ns > max_ns)) {
		__sync_fetch_and_add(&quick, 1);
	} else {
		__sync_fetch_and_add(&slow, 1);
		__builtin_memcpy(e.text, s->text, sizeof(e.text));
		bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &e, sizeof(e));
	}
	bpf_map_delete_elem(&starts, &tid);
	return 0;
}
