/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Measures how long a job waits in a queue until a thread of the pool takes it. Makes a histogram
 * for each thread of the pool. */
#include "../tool.h"

struct hist {
	u32 slots[SLOTS];
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u64);
} queued SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, struct hist);
} hists SEC(".maps");

static struct hist zero;
u64 deepest, depth, unknown;

SEC("uprobe/locks:enqueue") int BPF_KPROBE(on_enqueue, u64 job)
{
	u64 now = bpf_ktime_get_ns(), n;

	bpf_map_update_elem(&queued, &job, &now, BPF_ANY);
	/* the callers of enqueue() and dequeue() hold the queue's lock, so `depth` needs no atomic
	 * operation */
	n = ++depth;
	if (n > deepest)
		deepest = n;
	return 0;
}

SEC("uretprobe/locks:dequeue") int BPF_KRETPROBE(on_dequeued, u64 job)
{
	u64 *at = bpf_map_lookup_elem(&queued, &job), delta;
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct hist *h;
	u64 slot;

	depth--;
	if (!at) {
		__sync_fetch_and_add(&unknown, 1);
		return 0;
	}
	delta = bpf_ktime_get_ns() - *at;
	bpf_map_delete_elem(&queued, &job);
	h = bpf_map_lookup_elem(&hists, &tid);
	if (!h) {
		bpf_map_update_elem(&hists, &tid, &zero, BPF_NOEXIST);
		h = bpf_map_lookup_elem(&hists, &tid);
		if (!h)
			return 0;
		bpf_get_current_comm(h->comm, sizeof(h->comm));
	}
	slot = log2_of(delta / 1000U);
	if (slot >= SLOTS)
		slot = SLOTS - 1;
	__sync_fetch_and_add(&h->slots[slot], 1);
	return 0;
}
