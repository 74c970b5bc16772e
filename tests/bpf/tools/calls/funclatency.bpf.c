/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Measures how long a function takes. The histogram is in a variable. Constants set the unit, and
 * limit the histogram to one process. */
#include "../tool.h"

enum { NSEC, USEC, MSEC };
const volatile u32 unit = USEC;
const volatile u32 only_tgid = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, u64);
} starts SEC(".maps");

u32 hist[SLOTS];
u64 calls, total;

SEC("uprobe/calls:nap") int BPF_KPROBE(on_entry, u32 us)
{
	u64 id = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();

	if (only_tgid && only_tgid != id >> 32)
		return 0;
	bpf_map_update_elem(&starts, &id, &now, BPF_ANY);
	return 0;
}

SEC("uretprobe/calls:nap") int BPF_KRETPROBE(on_return)
{
	u64 id = bpf_get_current_pid_tgid(), *start = bpf_map_lookup_elem(&starts, &id),
		delta, slot;

	if (!start)
		return 0;
	delta = bpf_ktime_get_ns() - *start;
	bpf_map_delete_elem(&starts, &id);
	switch (unit) {
	case USEC:
		delta /= 1000;
		break;
	case MSEC:
		delta /= 1000000;
		break;
	}
	__sync_fetch_and_add(&calls, 1);
	__sync_fetch_and_add(&total, delta);
	slot = log2_of(delta);
	if (slot >= SLOTS)
		slot = SLOTS - 1;
	__sync_fetch_and_add(&hist[slot], 1);
	return 0;
}
