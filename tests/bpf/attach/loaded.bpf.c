/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attaches to all functions of a library that the target loads later. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__type(key, int);
	__type(value, long);
} counts SEC(".maps");

static int count(int what)
{
	long one = 1, *v = bpf_map_lookup_elem(&counts, &what);

	if (v)
		__sync_fetch_and_add(v, 1);
	else
		bpf_map_update_elem(&counts, &what, &one, BPF_NOEXIST);
	return 1;
}

SEC("uprobe/libloaded-1.2.so:loaded") int on_loaded(struct pt_regs *ctx) { return count(0); }
SEC("uretprobe/libloaded-1.2.so:loaded")
int on_loaded_ret(struct pt_regs *ctx) { return count(PT_REGS_RC(ctx)); }
/* attaches to each of the library's 200 functions whose names begin with `many` */
SEC("uprobe/libloaded-1.2.so:many*") int on_many(struct pt_regs *ctx) { return count(1); }

char LICENSE[] SEC("license") = "GPL";
