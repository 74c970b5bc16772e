/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Uses a queue of numbers, a stack of the last arguments, and a map of maps. on_submit() takes a
 * number from the queue, and on_complete() puts a number into the queue. */
#include "../tool.h"

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 8);
	__type(value, u32);
} free_numbers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 4);
	__type(value, u64);
} latest SEC(".maps");

struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, u64);
} small SEC(".maps"), large SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, u32);
	__array(values, struct inner);
} hists SEC(".maps") = {
	.values = { [0] = &small, [1] = &large },
};

bool filled;
u64 taken, given, none, pushed;

static void fill(void)
{
	if (filled)
		return;
	filled = true;
	for (u32 i = 0; i < 8; i++) {
		u32 number = 100 + i;

		bpf_map_push_elem(&free_numbers, &number, BPF_ANY);
	}
}

SEC("uprobe/requests:submit") int BPF_KPROBE(on_submit, void *r)
{
	u64 at = (u64)r;
	u32 number;

	fill();
	if (bpf_map_pop_elem(&free_numbers, &number))
		none++;
	else
		taken++;
	if (!bpf_map_push_elem(&latest, &at, BPF_EXIST))
		pushed++;
	return 0;
}

SEC("uretprobe/requests:submit") int BPF_KRETPROBE(on_submitted, u32 bytes)
{
	u32 which = bytes >= 8192, slot = slot_of(bytes);
	void *hist = bpf_map_lookup_elem(&hists, &which);
	u64 *v = hist ? bpf_map_lookup_elem(hist, &slot) : 0;

	if (v)
		__sync_fetch_and_add(v, 1);
	return 0;
}

SEC("uprobe/requests:complete") int BPF_KPROBE(on_complete)
{
	u32 number = 200;

	if (!bpf_map_push_elem(&free_numbers, &number, 0))
		given++;
	return 0;
}
