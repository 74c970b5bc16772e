// SPDX-License-Identifier: GPL-2.0-only
/* Callbacks in callbacks, as deep as possible. The innermost one calls a helper that needs much
 * stack. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "runs.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, int);
	__type(value, long);
} elems SEC(".maps");

struct arg {
	void *ctx;
};

static long cb7(void *map, int *key, long *value, struct arg *arg)
{
	count_run();
	bpf_printk("%d %ps %s", *key, arg->ctx, arg->ctx);
	return 0;
}

#define CALLBACK(n, next) \
static long cb##n(void *map, int *key, long *value, struct arg *arg) \
{ \
	struct arg mine = { arg->ctx }; \
\
	bpf_for_each_map_elem(&elems, cb##next, &mine, 0); \
	return 0; \
}

CALLBACK(6, 7)
CALLBACK(5, 6)
CALLBACK(4, 5)
CALLBACK(3, 4)
CALLBACK(2, 3)
CALLBACK(1, 2)

SEC("uprobe/target:add")
int first(void *ctx)
{
	struct arg arg = { ctx };
	int key = 0;
	long one = 1;

	bpf_map_update_elem(&elems, &key, &one, BPF_NOEXIST);
	bpf_for_each_map_elem(&elems, cb1, &arg, 0);
	return 1;
}

char _license[] SEC("license") = "GPL";
