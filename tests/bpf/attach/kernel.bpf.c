/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program on_add calls a helper that needs the kernel: -DCALL="..." has the call. With -DTAIL,
 * a program that on_add reaches by a tail call does so. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, int);
} cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, int);
} events SEC(".maps");

long result;

#ifdef TAIL
SEC("uprobe") int target(struct pt_regs *ctx)
{
	result = CALL;
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__array(values, int (struct pt_regs *));
} progs SEC(".maps") = { .values = { (void *)&target } };
#endif

SEC("uprobe/target:add") int on_add(struct pt_regs *ctx)
{
#ifdef TAIL
	bpf_tail_call(ctx, &progs, 0);
#else
	result = CALL;
#endif
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
