/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Measures how long reads, writes and syncs take. Makes a histogram for each kind of call. One
 * function handles all returns. */
#include "../tool.h"

enum { READ, WRITE, OPEN, FSYNC, NR_OPS };

const volatile int min_fd = 3;

struct start {
	u64 ns;
	u32 op;
	int fd;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct start);
} starts SEC(".maps");

struct hist {
	u32 slots[SLOTS];
} hists[NR_OPS];
u64 bytes[NR_OPS];

static int enter(u32 op, int fd)
{
	struct start s = { .ns = bpf_ktime_get_ns(), .op = op, .fd = fd };
	u32 tid = (u32)bpf_get_current_pid_tgid();

	if (fd >= min_fd)
		bpf_map_update_elem(&starts, &tid, &s, BPF_ANY);
	return 0;
}

/* A global function: the verifier checks it separately, for all arguments. */
__attribute__((noinline)) int finish(u32 tid, u64 op, s64 result)
{
	struct start *s = bpf_map_lookup_elem(&starts, &tid);
	u64 slot, delta;

	if (!s || s->op != op || op >= NR_OPS)
		return 0;
	delta = (bpf_ktime_get_ns() - s->ns) / 1000U;
	bpf_map_delete_elem(&starts, &tid);
	slot = log2_of(delta);
	if (slot >= SLOTS)
		slot = SLOTS - 1;
	__sync_fetch_and_add(&hists[op].slots[slot], 1);
	if (result > 0)
		__sync_fetch_and_add(&bytes[op], result);
	return 1;
}

#define LEAVE(op)	finish((u32)bpf_get_current_pid_tgid(), op, (s64)PT_REGS_RC(ctx))

SEC("uprobe/libc.so.6:read") int BPF_KPROBE(on_read, int fd) { return enter(READ, fd); }
SEC("uretprobe/libc.so.6:read") int on_read_ret(struct pt_regs *ctx) { return LEAVE(READ); }
SEC("uprobe/libc.so.6:write") int BPF_KPROBE(on_write, int fd) { return enter(WRITE, fd); }
SEC("uretprobe/libc.so.6:write") int on_write_ret(struct pt_regs *ctx) { return LEAVE(WRITE); }
SEC("uprobe/libc.so.6:fsync") int BPF_KPROBE(on_fsync, int fd) { return enter(FSYNC, fd); }
SEC("uretprobe/libc.so.6:fsync") int on_fsync_ret(struct pt_regs *ctx) { return LEAVE(FSYNC); }
