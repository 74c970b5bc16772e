/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts all returns. No function has a program at its entry, so calls begin on another path than
 * those of every.bpf.c. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
long ret;
SEC("kretprobe.multi/*") int on_ret(struct pt_regs *ctx)
{
	__sync_fetch_and_add(&ret, 1);
	return 1;
}
char LICENSE[] SEC("license") = "GPL";
