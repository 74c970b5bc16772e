/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts the calls of each function, all calls, and all returns. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, long);
	__type(value, long);
} entries SEC(".maps");
long entry, ret;
SEC("kprobe.multi/*") int on_entry(struct pt_regs *ctx)
{
  long key = bpf_get_func_ip(ctx), one = 1, *v;
  v = bpf_map_lookup_elem(&entries, &key);
  if (v) __sync_fetch_and_add(v, 1); else bpf_map_update_elem(&entries, &key, &one, BPF_NOEXIST);
  __sync_fetch_and_add(&entry, 1);
  return 1;
}
SEC("kretprobe.multi/*") int on_ret(struct pt_regs *ctx)
{
  __sync_fetch_and_add(&ret, 1);
  return 1;
}
char LICENSE[] SEC("license") = "GPL";
