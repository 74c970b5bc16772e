// SPDX-License-Identifier: GPL-2.0-only
/* Each run makes tail calls in a subprogram. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "runs.bpf.h"

int first(void *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__array(values, int (void *));
} jumps SEC(".maps") = { .values = { (void *)first } };

static __attribute__((noinline)) int jump(void *ctx)
{
	bpf_tail_call(ctx, &jumps, 0);
	return 0;
}

SEC("uprobe/target:add")
int first(void *ctx)
{
	count_run();
	return jump(ctx) + 1;
}

char _license[] SEC("license") = "GPL";
