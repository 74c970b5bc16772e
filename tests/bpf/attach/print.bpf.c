/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports calls of add() through trace_printk, a perf event array and a ring buffer. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

SEC("kprobe/add") int on_add(struct pt_regs *ctx)
{
	int a = PT_REGS_PARM1(ctx);

	if (a > 2)
		return 0;
	bpf_printk("add(%d, %d)", a, (int)PT_REGS_PARM2(ctx));
	a += 0x10;
	bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &a, sizeof(a));
	a += 0x10;
	bpf_ringbuf_output(&ring, &a, sizeof(a), 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
