/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Patchbay adds two maps of its own, one for output and one for counts. Their names must not
 * collide with the names of this object's maps. The first 15 characters of a map's name are stored
 * in the map. Here two maps have them in common. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, long);
} bpf_output SEC(".maps"), bpf_counts SEC(".maps"), bytes_received_in SEC(".maps"),
  bytes_received_out SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} records_of_all_calls SEC(".maps");

static void count(void *map, long add)
{
	int key = 0;
	long *n = bpf_map_lookup_elem(map, &key);

	if (n)
		__sync_fetch_and_add(n, add);
}

SEC("uprobe/target:add") int entered(void *ctx)
{
	long seven = 7;

	count(&bpf_output, 1);
	count(&bpf_counts, 10);
	count(&bytes_received_in, 100);
	count(&bytes_received_out, 1000);
	bpf_ringbuf_output(&records_of_all_calls, &seven, sizeof(seven), 0);
	bpf_printk("entered");
	return 1;
}

char _license[] SEC("license") = "GPL";
