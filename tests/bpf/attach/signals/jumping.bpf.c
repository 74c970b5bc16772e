/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Takes a per-CPU slot at each call, and reserves a record at some calls. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, long);
} cpu_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} ring SEC(".maps");

SEC("uprobe/jumping:often") int on_often(struct pt_regs *ctx)
{
	int zero = 0;
	long *n = bpf_map_lookup_elem(&cpu_slots, &zero), *r;

	if (n)
		++*n;
	if (bpf_get_prandom_u32() & 255)
		return 0;
	r = bpf_ringbuf_reserve(&ring, 8, 0);
	if (r) {
		*r = 1;
		bpf_ringbuf_submit(r, 0);
	}
	return 0;
}

SEC("uprobe/jumping:last") int on_last(struct pt_regs *ctx)
{
	long *r = bpf_ringbuf_reserve(&ring, 8, 0);

	if (r) {
		*r = 0x100 + PT_REGS_PARM1(ctx);
		bpf_ringbuf_submit(r, 0);
	}
	bpf_printk("last %d", (int)PT_REGS_PARM1(ctx));
	return 0;
}

/* Tells the program how many bytes of the ring buffer haven't been read. */
SEC("uprobe/jumping:unread") int on_unread(struct pt_regs *ctx)
{
	return bpf_override_return(ctx, bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA));
}

char LICENSE[] SEC("license") = "GPL";
