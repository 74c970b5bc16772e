/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes a record to a ring buffer for each call. If the argument is 7777, the eBPF program kills
 * the process after it has reserved the record and before it submits the record. If it is 8888, the
 * eBPF program sends SIGUSR1 to the thread at this place. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

SEC("uprobe/forked:call") int on_call(struct pt_regs *ctx)
{
	long *r = bpf_ringbuf_reserve(&ring, 200, 0);

	if (!r)
		return 1;
	*r = PT_REGS_PARM1(ctx);
	if (*r == 7777)
		bpf_send_signal(9);
	else if (*r == 8888)
		bpf_send_signal_thread(10);
	bpf_ringbuf_submit(r, 0);
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
