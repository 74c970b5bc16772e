/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports each lookup of a host's name, with its time and result. */
#include "../tool.h"

struct event {
	u64 ns;
	int error;
	char comm[16];
	char host[80];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 128);
	__type(key, u32);
	__type(value, struct event);
} under_way SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} events SEC(".maps");

static int begin(struct pt_regs *ctx)
{
	struct event e = { 0 };
	u32 tid = (u32)bpf_get_current_pid_tgid();

	if (!PT_REGS_PARM1(ctx))
		return 0;
	e.ns = bpf_ktime_get_ns();
	bpf_get_current_comm(e.comm, sizeof(e.comm));
	bpf_probe_read_user(e.host, sizeof(e.host) - 1, (void *)PT_REGS_PARM1(ctx));
	bpf_map_update_elem(&under_way, &tid, &e, BPF_ANY);
	return 0;
}

static int end(struct pt_regs *ctx)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct event *e = bpf_map_lookup_elem(&under_way, &tid);

	if (!e)
		return 0;
	e->ns = bpf_ktime_get_ns() - e->ns;
	e->error = (int)PT_REGS_RC(ctx);
	bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, e, sizeof(*e));
	bpf_map_delete_elem(&under_way, &tid);
	return 0;
}

SEC("uprobe/libc.so.6:getaddrinfo") int on_getaddrinfo(struct pt_regs *ctx) { return begin(ctx); }
SEC("uretprobe/libc.so.6:getaddrinfo")
int on_getaddrinfo_ret(struct pt_regs *ctx) { return end(ctx); }
SEC("uprobe/libc.so.6:gethostbyname")
int on_gethostbyname(struct pt_regs *ctx) { return begin(ctx); }
SEC("uretprobe/libc.so.6:gethostbyname")
int on_gethostbyname_ret(struct pt_regs *ctx) { return end(ctx); }
