/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts the signal handlers that run, and those of them that run in the middle of the program
 * on_long. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>

enum { HANDLED, IN_THE_MIDDLE, NR };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NR);
	__type(key, int);
	__type(value, long);
} counts SEC(".maps");

static volatile int running;

static void count(int what)
{
	long *n = bpf_map_lookup_elem(&counts, &what);

	if (n)
		++*n;
}

static long read_clocks(unsigned int i, void *ctx)
{
	return i & 1 ? !bpf_ktime_get_ns() : bpf_get_smp_processor_id() > 100000;
}

SEC("uprobe/deferred:long_program") int on_long(struct pt_regs *ctx)
{
	running = 1;
	bpf_loop(2000, read_clocks, NULL, 0);
	running = 0;
	return 0;
}

SEC("uprobe/deferred:handled") int on_handled(struct pt_regs *ctx)
{
	count(HANDLED);
	if (running)
		count(IN_THE_MIDDLE);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
