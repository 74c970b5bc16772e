/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Some of these programs are attached nowhere, but attached programs reach them by tail calls
 * through static arrays. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

int second(void *ctx), third(void *ctx), broken(void *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, int);
	__type(value, long);
} counts SEC(".maps");

#define JUMPS(name, prog) \
	struct { \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY); \
		__uint(max_entries, 1); \
		__uint(key_size, 4); \
		__array(values, int (void *)); \
	} name SEC(".maps") = { .values = { (void *)prog } }
JUMPS(to_second, second);
JUMPS(to_third, third);
JUMPS(to_broken, broken);

static int count(int key)
{
	long *n = bpf_map_lookup_elem(&counts, &key);

	if (n)
		__sync_fetch_and_add(n, 1);
	return 1;
}

SEC("uprobe/target:add") int first(void *ctx)
{
	count(0);
	bpf_tail_call(ctx, &to_second, 0);
	return count(3);
}

SEC("kprobe") int second(void *ctx)
{
	count(1);
	bpf_tail_call(ctx, &to_third, 0);
	return count(3);
}

SEC("kprobe") int third(void *ctx)
{
	return count(2);
}

/* the verifier would reject this program, but no attached program reaches it */
SEC("kprobe") int broken(void *ctx)
{
	return **(int **)ctx;
}
SEC("kprobe") int unused(void *ctx)
{
	bpf_tail_call(ctx, &to_broken, 0);
	return 1;
}

char _license[] SEC("license") = "GPL";
