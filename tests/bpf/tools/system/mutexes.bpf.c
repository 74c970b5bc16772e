/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts how often each mutex is taken. Measures how long threads wait for the mutex, and how long
 * they hold it. Records the name of the thread that held the mutex longest. */
#include "../tool.h"

struct holder {
	u64 thread;
	u64 mutex;
};

struct times {
	u64 asked, got;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct holder);
	__type(value, struct times);
} holders SEC(".maps");

/* for each thread, the mutex that it waits for; a thread waits for only one mutex at a time */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, u64);
} asked SEC(".maps");

struct stat {
	u64 taken, waited_ns, held_ns, longest_ns;
	char longest_comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u64);
	__type(value, struct stat);
} stats SEC(".maps");

u64 double_stats;

SEC("uprobe/libc.so.6:pthread_mutex_lock") int BPF_KPROBE(on_lock, u64 mutex)
{
	struct holder h = { .thread = bpf_get_current_pid_tgid(), .mutex = mutex };
	struct times t = { .asked = bpf_ktime_get_ns() };

	bpf_map_update_elem(&holders, &h, &t, BPF_ANY);
	bpf_map_update_elem(&asked, &h.thread, &mutex, BPF_ANY);
	return 0;
}

SEC("uretprobe/libc.so.6:pthread_mutex_lock") int BPF_KRETPROBE(on_locked, int error)
{
	struct holder h = { .thread = bpf_get_current_pid_tgid() };
	u64 *mutex = bpf_map_lookup_elem(&asked, &h.thread);
	struct times *t;

	if (!mutex)
		return 0;
	h.mutex = *mutex;
	bpf_map_delete_elem(&asked, &h.thread);
	t = bpf_map_lookup_elem(&holders, &h);
	if (t)
		t->got = bpf_ktime_get_ns();
	return 0;
}

SEC("uprobe/libc.so.6:pthread_mutex_unlock") int BPF_KPROBE(on_unlock, u64 mutex)
{
	struct holder h = { .thread = bpf_get_current_pid_tgid(), .mutex = mutex };
	struct times *t = bpf_map_lookup_elem(&holders, &h);
	struct stat *s, first;
	u64 held;

	if (!t || !t->got)
		return 0;
	held = bpf_ktime_get_ns() - t->got;
	s = bpf_map_lookup_elem(&stats, &mutex);
	if (!s) {
		__builtin_memset(&first, 0, sizeof(first));
		bpf_map_update_elem(&stats, &mutex, &first, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&stats, &mutex);
	}
	if (s) {
		__sync_fetch_and_add(&s->taken, 1);
		__sync_fetch_and_add(&s->waited_ns, t->got - t->asked);
		__sync_fetch_and_add(&s->held_ns, held);
		if (held > s->longest_ns) {
			s->longest_ns = held;
			bpf_get_current_comm(s->longest_comm, sizeof(s->longest_comm));
		}
	}
	bpf_map_delete_elem(&holders, &h);
	return 0;
}
