/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads from an invalid address. For each error, counts how often the read has failed with it. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, int);
	__type(value, long);
} errors SEC(".maps");

SEC("uprobe/masks:look") int on_look(struct pt_regs *ctx)
{
	long value, one = 1, *n;
	int error = -bpf_probe_read_user(&value, sizeof(value), (void *)PT_REGS_PARM1(ctx));

	bpf_map_update_elem(&errors, &error, &(long){ 0 }, BPF_NOEXIST);
	n = bpf_map_lookup_elem(&errors, &error);
	if (n)
		__sync_fetch_and_add(n, one);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
