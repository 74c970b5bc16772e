/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs are left while they change maps that have locks for writers, buckets, or announcements
 * of changes. The values are large, so that the programs are in the middle of a change most of the
 * time. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>

#define SIZE	4096
#define KIND(n)	(1 << (n))

struct value { char bytes[SIZE]; };
struct prefix { unsigned int len, data; };

struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, int);
	 __type(value, struct value); } source SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 4);
	 __type(value, struct value); } queue SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_LPM_TRIE); __uint(max_entries, 4);
	 __uint(map_flags, BPF_F_NO_PREALLOC); __type(key, struct prefix);
	 __type(value, struct value); } trie SEC(".maps");

struct { __uint(type, BPF_MAP_TYPE_STACK_TRACE); __uint(max_entries, 1);
	 __uint(key_size, 4); __uint(value_size, 127 * 8); } stacks SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_HASH); __uint(max_entries, 1); __type(key, int);
	 __type(value, struct value); } hash SEC(".maps");

/* Returns 0, or KIND(n) if the operation fails. If `skip` differs from that of the operation
 * before, the stack does, too. */
static int change(struct pt_regs *ctx, int n, int skip)
{
	int zero = 0;
	struct value *v = bpf_map_lookup_elem(&source, &zero);
	struct prefix prefix = { 32, 1 };
	long err = 0;

	if (!v)
		return 0;
	if (n == 0)
		err = bpf_map_push_elem(&queue, v, BPF_EXIST);
	else if (n == 1)
		err = bpf_map_update_elem(&trie, &prefix, v, BPF_ANY);
	else if (n == 2)
		err = bpf_get_stackid(ctx, &stacks,
				      BPF_F_USER_STACK | BPF_F_REUSE_STACKID | skip) < 0;
	else
		err = bpf_map_update_elem(&hash, &zero, v, BPF_ANY);
	return err ? KIND(n) : 0;
}

SEC("uprobe/pushing:often") int on_often(struct pt_regs *ctx)
{
	int n = ctx->rdi & 3;

	for (int i = 0; i < 8; i++)
		change(ctx, n, i & 1);
	return 0;
}

SEC("uprobe/pushing:last") int on_last(struct pt_regs *ctx)
{
	int failed = 0;

	for (int n = 0; n < 4; n++)
		failed |= change(ctx, n, 0);
	bpf_override_return(ctx, failed);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
