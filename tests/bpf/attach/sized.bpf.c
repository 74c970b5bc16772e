/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* In the object, the map has no value_size and no max_entries. --map sets them. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, 4);
} calls SEC(".maps");

static void count(int key)
{
	long *n = bpf_map_lookup_elem(&calls, &key);

	if (n)
		__sync_fetch_and_add(n, 1);
}

SEC("uprobe/target:add") int entered(void *ctx)
{
	count(0);
	count(2);
	count(3);
	return 1;
}

char _license[] SEC("license") = "GPL";
