/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts the returns of each function of run_steps. With ENTRIES, each function also has a program
 * at its entry. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, long);
	__type(value, long);
} returns SEC(".maps");
SEC("kretprobe.multi/t_*") int on_return(struct pt_regs *ctx)
{
	long key = bpf_get_func_ip(ctx), one = 1, *v = bpf_map_lookup_elem(&returns, &key);

	if (v)
		__sync_fetch_and_add(v, 1);
	else
		bpf_map_update_elem(&returns, &key, &one, BPF_NOEXIST);
	return 1;
}
#ifdef ENTRIES
SEC("kprobe.multi/t_*") int on_entry(struct pt_regs *ctx)
{
	return 1;
}
#endif
char LICENSE[] SEC("license") = "GPL";
