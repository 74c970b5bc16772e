/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads two clocks whose times are far apart: one counts from the boot, the other from 1970. Counts
 * readings that can't be right. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define APART	1000000000000000000ull	/* between any times of the two clocks */

enum { CALLS, WRONG_MONOTONIC, WRONG_TAI, BACKWARDS, FROZEN, WRONG_FROZEN, NR };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NR);
	__type(key, int);
	__type(value, long);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, int);
	__type(value, __u64);
} last SEC(".maps");

static void count(int what, int yes)
{
	long *n = bpf_map_lookup_elem(&counts, &what);

	if (n && yes)
		__sync_fetch_and_add(n, 1);
}

SEC("uprobe/clocks:read_clocks") int on_clocks(struct pt_regs *ctx)
{
	__u64 monotonic = bpf_ktime_get_ns(), tai = bpf_ktime_get_tai_ns(), *before;
	int thread = (int)PT_REGS_PARM1(ctx);

	count(CALLS, 1);
	count(WRONG_MONOTONIC, monotonic >= APART);
	count(WRONG_TAI, tai < APART);
	before = bpf_map_lookup_elem(&last, &thread);
	if (before) {
		count(BACKWARDS, monotonic < *before);
		*before = monotonic;
	}
	return 0;
}

/* The clocks stand still. Each of them still has its own time. */
SEC("uprobe/clocks:read_frozen") int on_frozen(struct pt_regs *ctx)
{
	__u64 monotonic = bpf_ktime_get_ns(), tai = bpf_ktime_get_tai_ns();
	__u64 boot = bpf_ktime_get_boot_ns();

	count(FROZEN, 1);
	count(WRONG_FROZEN, !monotonic || monotonic >= APART || tai < APART || !boot ||
			    boot >= APART || bpf_ktime_get_ns() != monotonic);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
