/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports a program's writes to a descriptor. Makes a record for each write. The record has at most
 * the first MOST bytes of the data. */
#include "../tool.h"

#define MOST	8192

const volatile int only_fd = 1;	/* -1: any */

struct event {
	u64 ns;
	u32 tid;
	u32 whole;		/* length of the write */
	u32 length;		/* length of the data that follows */
	char comm[16];
	u8 data[MOST];
};

/* the record is too large for the stack */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct event);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} writes SEC(".maps");

u64 calls, bytes, failed;

SEC("uprobe/libc.so.6:write") int BPF_KPROBE(on_write, int fd, const void *from, u64 n)
{
	u32 zero = 0;
	u64 length = n;
	struct event *e;

	if (only_fd != -1 && fd != only_fd)
		return 0;
	e = bpf_map_lookup_elem(&scratch, &zero);
	if (!e)
		return 0;
	e->ns = bpf_ktime_get_ns();
	e->tid = (u32)bpf_get_current_pid_tgid();
	e->whole = n;
	bpf_get_current_comm(e->comm, sizeof(e->comm));
	if (length > MOST)
		length = MOST;
	e->length = length;
	if (bpf_probe_read_user(e->data, length, from))
		__sync_fetch_and_add(&failed, 1);
	__sync_fetch_and_add(&calls, 1);
	__sync_fetch_and_add(&bytes, n);
	bpf_perf_event_output(ctx, &writes, BPF_F_CURRENT_CPU, e,
			      __builtin_offsetof(struct event, data) + length);
	return 0;
}
