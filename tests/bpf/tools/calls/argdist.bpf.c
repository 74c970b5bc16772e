/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes a histogram of the argument `size` of work(), with counts per CPU. Also makes a histogram
 * of `size` for each value of the argument `kind`. The latter are in one hash, whose key is a kind
 * and a slot. */
#include "../tool.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, u64);
} sizes SEC(".maps");

struct key {
	u32 kind;
	u32 slot;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 128);
	__type(key, struct key);
	__type(value, u64);
} kinds SEC(".maps");

SEC("uprobe/calls:work") int BPF_KPROBE(on_work, u32 size, u32 kind)
{
	u32 slot = slot_of(size);
	u64 *v = bpf_map_lookup_elem(&sizes, &slot);
	struct key key = { .kind = kind, .slot = slot };

	if (v)
		*v += 1;
	count_in(&kinds, &key, 1);
	return 0;
}
