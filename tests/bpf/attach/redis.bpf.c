/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts the SET and GET commands that redis-server carries out. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, int);
	__type(value, long);
} commands SEC(".maps");

static int count(int what)
{
	long one = 1, *v = bpf_map_lookup_elem(&commands, &what);

	if (v)
		__sync_fetch_and_add(v, 1);
	else
		bpf_map_update_elem(&commands, &what, &one, BPF_NOEXIST);
	return 0;
}

SEC("kprobe/setCommand") int on_set(struct pt_regs *ctx) { return count(1); }
SEC("kprobe/getCommand") int on_get(struct pt_regs *ctx) { return count(2); }
SEC("kretprobe/getCommand") int on_get_ret(struct pt_regs *ctx) { return count(3); }

char LICENSE[] SEC("license") = "GPL";
