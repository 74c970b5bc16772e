/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Patchbay adds two maps of its own, one for output and one for counts. Their names must not
 * collide with the names of this object's maps. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, long);
} bpf_output SEC(".maps"), bpf_counts SEC(".maps");

static void count(void *map, long add)
{
	int key = 0;
	long *n = bpf_map_lookup_elem(map, &key);

	if (n)
		__sync_fetch_and_add(n, add);
}

SEC("uprobe/target:add") int entered(void *ctx)
{
	count(&bpf_output, 1);
	count(&bpf_counts, 10);
	bpf_printk("entered");
	return 1;
}

char _license[] SEC("license") = "GPL";
