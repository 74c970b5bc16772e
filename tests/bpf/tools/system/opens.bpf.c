/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports opens of files and their results. If only_failed is set, successful opens aren't
 * reported. */
#include "../tool.h"

const volatile bool only_failed = false;
const volatile u32 only_tgid = 0;

struct args {
	const char *path;
	int flags;
};

struct event {
	u64 ns;
	u32 tgid, uid;
	int result, flags;
	char comm[16];
	char path[200];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct args);
} started SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} events SEC(".maps");

static __always_inline bool wanted(void)
{
	return !only_tgid || only_tgid == bpf_get_current_pid_tgid() >> 32;
}

SEC("uprobe/libc.so.6:open") int BPF_KPROBE(on_open, const char *path, int flags)
{
	struct args a = { .path = path, .flags = flags };
	u32 tid = (u32)bpf_get_current_pid_tgid();

	if (wanted())
		bpf_map_update_elem(&started, &tid, &a, BPF_ANY);
	return 0;
}

SEC("uretprobe/libc.so.6:open") int BPF_KRETPROBE(on_opened, int result)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct args *a = bpf_map_lookup_elem(&started, &tid);
	struct event e;

	if (!a)
		return 0;
	if (only_failed && result >= 0)
		goto out;
	__builtin_memset(&e, 0, sizeof(e));
	e.ns = bpf_ktime_get_ns();
	e.tgid = bpf_get_current_pid_tgid() >> 32;
	e.uid = (u32)bpf_get_current_uid_gid();
	e.result = result;
	e.flags = a->flags;
	bpf_get_current_comm(e.comm, sizeof(e.comm));
	bpf_probe_read_user_str(e.path, sizeof(e.path), a->path);
	bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &e, sizeof(e));
out:
	bpf_map_delete_elem(&started, &tid);
	return 0;
}
