/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports the texts that are passed to a function. For each text, reserves a record in a ring
 * buffer, fills the record, and submits it. */
#include "../tool.h"

#define LONGEST	64

struct event {
	u32 tid, number;
	s64 length;		/* length of the copied text with its NUL */
	char comm[16];
	char text[LONGEST];
	u64 stack[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} events SEC(".maps");

u64 dropped, skipped;

SEC("uprobe/calls:say") int BPF_KPROBE(on_say, const char *text, u32 number)
{
	struct event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		__sync_fetch_and_add(&dropped, 1);
		return 0;
	}
	e->length = bpf_probe_read_user_str(e->text, sizeof(e->text), text);
	if (e->length <= 1) {		/* the text is empty, or there was an error */
		bpf_ringbuf_discard(e, 0);
		__sync_fetch_and_add(&skipped, 1);
		return 0;
	}
	e->tid = (u32)bpf_get_current_pid_tgid();
	e->number = number;
	bpf_get_current_comm(e->comm, sizeof(e->comm));
	__builtin_memset(e->stack, 0, sizeof(e->stack));
	bpf_get_stack(ctx, e->stack, sizeof(e->stack), BPF_F_USER_STACK);
	bpf_ringbuf_submit(e, 0);
	return 0;
}
