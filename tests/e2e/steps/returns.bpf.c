/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An eBPF program at the entry of t_hidden(). It makes t_hidden() return before its body runs. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
SEC("kprobe/t_hidden") int on_hidden(struct pt_regs *ctx)
{
	bpf_override_return(ctx, 33);
	return 1;
}
char LICENSE[] SEC("license") = "GPL";
