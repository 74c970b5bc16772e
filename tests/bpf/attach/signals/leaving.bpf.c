/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs are left while they hold a record of a ring buffer. As long as such a record isn't given
 * back, the ring buffer has room only for the ROOM records after it. If it had room for more, the
 * program on_last returns -1 in place of last(). */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <asm/signal.h>
#include <bpf/bpf_helpers.h>

#define ROOM	(4096 / 16)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

long records;

static int hold(int sig)
{
	long *r = bpf_ringbuf_reserve(&ring, 8, 0);

	if (!r)
		return 0;
	*r = sig;
	bpf_send_signal_thread(sig);
	bpf_ringbuf_submit(r, 0);
	return 0;
}

SEC("uretprobe/leaving:returns") int on_return(struct pt_regs *ctx) { return hold(SIGUSR1); }
SEC("uprobe/leaving:enters") int on_entry(struct pt_regs *ctx) { return hold(SIGUSR2); }
SEC("uprobe/leaving:inner") int on_inner(struct pt_regs *ctx) { return hold(SIGUSR1); }

SEC("uprobe/leaving:last") int on_last(struct pt_regs *ctx)
{
	long *r = bpf_ringbuf_reserve(&ring, 8, 0);

	if (!r)
		return 0;
	*r = 0;
	bpf_ringbuf_submit(r, 0);
	if (++records > ROOM)
		bpf_override_return(ctx, -1);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
