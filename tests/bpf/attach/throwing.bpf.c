/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attaches to entry and return of all functions of `throwing`. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

long entries, returns;

SEC("kprobe.multi/*") int on_entry(struct pt_regs *ctx)
{
	__sync_fetch_and_add(&entries, 1);
	return 1;
}

SEC("kretprobe.multi/*") int on_return(struct pt_regs *ctx)
{
	__sync_fetch_and_add(&returns, 1);
	return 1;
}

SEC("uretprobe/throwing:thrower") int on_thrower(struct pt_regs *ctx) { return 1; }

char LICENSE[] SEC("license") = "GPL";
