// SPDX-License-Identifier: GPL-2.0-only
/* The attached program reaches a per-CPU map only by a tail call. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "runs.bpf.h"

int second(void *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, long);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__array(values, int (void *));
} jumps SEC(".maps") = { .values = { (void *)second } };

SEC("uprobe/target:add")
int first(void *ctx)
{
	bpf_tail_call(ctx, &jumps, 0);
	return 1;
}

SEC("kprobe")
int second(void *ctx)
{
	int key = 0;
	long *n = bpf_map_lookup_elem(&slots, &key);

	if (n)
		*n += 1;
	count_run();
	return 1;
}

char _license[] SEC("license") = "GPL";
