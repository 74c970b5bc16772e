// SPDX-License-Identifier: GPL-2.0-only
/* Counts in the element that a constant selects. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile struct {
	unsigned char magic[16];
	int key;
} choice = { {
	0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
	0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf }, 1 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, int);
	__type(value, long);
} runs SEC(".maps");

SEC("uprobe/target:add")
int first(void *ctx)
{
	int key = choice.key;
	long *n = bpf_map_lookup_elem(&runs, &key);

	if (n)
		__sync_fetch_and_add(n, 1);
	return choice.magic[0] & 1;
}

char _license[] SEC("license") = "GPL";
