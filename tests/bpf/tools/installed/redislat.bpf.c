/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Measures how long redis-server takes for each kind of command. */
#include "../tool.h"

struct hist {
	u32 slots[SLOTS];
	u64 calls, ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, struct hist);
} hists SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 128);
	__type(key, u32);
	__type(value, u64);
} starts SEC(".maps");

static const struct hist zero;

static int begin(void)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	u64 now = bpf_ktime_get_ns();

	bpf_map_update_elem(&starts, &tid, &now, BPF_ANY);
	return 0;
}

static int end(u32 kind)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	u64 *start = bpf_map_lookup_elem(&starts, &tid), delta, slot;
	struct hist *h;

	if (!start)
		return 0;
	delta = bpf_ktime_get_ns() - *start;
	bpf_map_delete_elem(&starts, &tid);
	h = bpf_map_lookup_elem(&hists, &kind);
	if (!h) {
		bpf_map_update_elem(&hists, &kind, &zero, BPF_NOEXIST);
		h = bpf_map_lookup_elem(&hists, &kind);
		if (!h)
			return 0;
	}
	slot = log2_of(delta);
	if (slot >= SLOTS)
		slot = SLOTS - 1;
	h->slots[slot]++;
	h->calls++;
	h->ns += delta;
	return 0;
}

SEC("kprobe/setCommand") int on_set(void *ctx) { return begin(); }
SEC("kretprobe/setCommand") int on_set_ret(void *ctx) { return end(1); }
SEC("kprobe/getCommand") int on_get(void *ctx) { return begin(); }
SEC("kretprobe/getCommand") int on_get_ret(void *ctx) { return end(2); }
SEC("kprobe/incrCommand") int on_incr(void *ctx) { return begin(); }
SEC("kretprobe/incrCommand") int on_incr_ret(void *ctx) { return end(3); }
