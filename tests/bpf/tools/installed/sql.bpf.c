/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports each statement that a program prepares, and the result that sqlite returns. Uses dynptrs
 * to write the records to a ring buffer. */
#include "../tool.h"

#define LONGEST	128

struct event {
	s64 result;
	u64 ns;
	char text[LONGEST];
};

struct call {
	u64 start;
	const char *text;
};

/* While sqlite prepares a statement, it prepares other statements, so the calls of a thread are
 * nested. `slot` is the stack slot of a call's return address, and distinguishes nested calls. */
struct key {
	u64 thread, slot;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct key);
	__type(value, struct call);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 262144);
} events SEC(".maps");

SEC("uprobe/libsqlite3.so.0:sqlite3_prepare_v2")
int BPF_KPROBE(on_prepare, void *db, const char *text)
{
	struct call c = { .start = bpf_ktime_get_ns(), .text = text };
	struct key key = { .thread = bpf_get_current_pid_tgid(), .slot = PT_REGS_SP(ctx) };

	bpf_map_update_elem(&calls, &key, &c, BPF_ANY);
	return 0;
}

SEC("uretprobe/libsqlite3.so.0:sqlite3_prepare_v2") int BPF_KRETPROBE(on_prepared, int result)
{
	struct key key = { .thread = bpf_get_current_pid_tgid(), .slot = PT_REGS_SP(ctx) - 8 };
	struct call *c = bpf_map_lookup_elem(&calls, &key);
	struct bpf_dynptr to;
	struct event *e;

	if (!c)
		return 0;
	if (!bpf_ringbuf_reserve_dynptr(&events, sizeof(*e), 0, &to)) {
		e = bpf_dynptr_data(&to, 0, sizeof(*e));
		if (e) {
			e->result = result;
			e->ns = bpf_ktime_get_ns() - c->start;
			__builtin_memset(e->text, 0, sizeof(e->text));
			bpf_probe_read_user_str(e->text, sizeof(e->text), c->text);
		}
	}
	bpf_ringbuf_submit_dynptr(&to, 0);
	bpf_map_delete_elem(&calls, &key);
	return 0;
}
