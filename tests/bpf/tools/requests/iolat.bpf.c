/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Measures the time from a request's submission to its completion. Makes a histogram for each kind
 * of request. Each histogram is one value of a hash. */
#include "../tool.h"
#include "requests.h"
#include <asm/errno.h>

struct hist {
	u32 slots[SLOTS];
	u64 bytes;
};

struct kind {
	u32 op;
	u32 urgent;
};

static const struct hist empty;
const volatile bool in_ms = false;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, u64);
	__type(value, u64);
} starts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct kind);
	__type(value, struct hist);
} hists SEC(".maps");

u64 errors;

SEC("uprobe/requests:submit") int BPF_KPROBE(on_submit, struct ticket *r)
{
	u64 now = bpf_ktime_get_ns(), at = (u64)r;

	bpf_map_update_elem(&starts, &at, &now, BPF_ANY);
	return 0;
}

static struct hist *hist_of(const struct kind *kind)
{
	struct hist *h = bpf_map_lookup_elem(&hists, kind);
	long err;

	if (h)
		return h;
	err = bpf_map_update_elem(&hists, kind, &empty, BPF_NOEXIST);
	if (err && err != -EEXIST)
		return 0;
	return bpf_map_lookup_elem(&hists, kind);
}

SEC("uprobe/requests:complete") int BPF_KPROBE(on_complete, struct ticket *r, int error)
{
	u64 at = (u64)r, *start = bpf_map_lookup_elem(&starts, &at), slot;
	struct kind kind = { 0 };
	struct hist *h;
	s64 delta;

	if (!start)
		return 0;
	delta = (s64)(bpf_ktime_get_ns() - *start);
	if (delta < 0)
		goto out;
	kind.op = BPF_CORE_READ_USER(r, what.op);
	kind.urgent = BPF_CORE_READ_USER(r, what.urgent);
	h = hist_of(&kind);
	if (!h)
		goto out;
	if (in_ms)
		delta /= 1000000U;
	else
		delta /= 1000U;
	slot = log2_of(delta);
	if (slot >= SLOTS)
		slot = SLOTS - 1;
	__sync_fetch_and_add(&h->slots[slot], 1);
	__sync_fetch_and_add(&h->bytes, BPF_CORE_READ_USER(r, bytes));
	if (error)
		__sync_fetch_and_add(&errors, 1);
out:
	bpf_map_delete_elem(&starts, &at);
	return 0;
}
