// SPDX-License-Identifier: GPL-2.0-only
/* Each run makes tail calls in callbacks, so that each of them leaves two calls of a helper on the
 * stack. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "runs.bpf.h"

int first(void *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, int);
	__type(value, long);
} elems SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__array(values, int (void *));
} jumps SEC(".maps") = { .values = { (void *)first } };

struct arg {
	void *ctx;
};

static long inner(void *map, int *key, long *value, struct arg *arg)
{
	bpf_tail_call(arg->ctx, &jumps, 0);
	return 0;
}

static long outer(void *map, int *key, long *value, struct arg *arg)
{
	struct arg next = { arg->ctx };

	bpf_for_each_map_elem(&elems, inner, &next, 0);
	return 0;
}

SEC("uprobe/target:add")
int first(void *ctx)
{
	struct arg arg = { ctx };
	long one = 1;
	int key = 0;

	count_run();
	bpf_map_update_elem(&elems, &key, &one, BPF_NOEXIST);
	bpf_for_each_map_elem(&elems, outer, &arg, 0);
	return 1;
}

char _license[] SEC("license") = "GPL";
