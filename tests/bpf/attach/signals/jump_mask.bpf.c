/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program on_interrupted sends a signal that the agent defers, and a signal that it can't
 * defer. If the argument is 2, it sends only the latter. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <asm/signal.h>
#include <bpf/bpf_helpers.h>

SEC("uprobe/jump_mask:interrupted") int on_interrupted(struct pt_regs *ctx)
{
	if ((int)ctx->rdi != 2)
		bpf_send_signal_thread(SIGUSR1);
	bpf_send_signal_thread(SIGFPE);
	return 0;
}

SEC("uprobe/jump_mask:later") int on_later(struct pt_regs *ctx) { return 0; }

char LICENSE[] SEC("license") = "GPL";
