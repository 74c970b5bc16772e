/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts a program's allocations by their size in KiB: patchbay bpf trace malloc.bpf.o -- PROG */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, int);
	__type(value, long);
} sizes SEC(".maps");

SEC("uprobe/libc.so.6:malloc") int on_malloc(struct pt_regs *ctx)
{
	int kib = PT_REGS_PARM1(ctx) >> 10;
	long one = 1, *n = bpf_map_lookup_elem(&sizes, &kib);

	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&sizes, &kib, &one, BPF_NOEXIST);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
