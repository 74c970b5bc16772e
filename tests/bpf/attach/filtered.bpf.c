/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls helpers that might make system calls, and counts their results. run_attach has the expected
 * counts. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, int);
	__type(value, long);
} counts SEC(".maps");

static void count(int key)
{
	long one = 1, *n;

	bpf_map_update_elem(&counts, &key, &(long){ 0 }, BPF_NOEXIST);
	n = bpf_map_lookup_elem(&counts, &key);
	if (n)
		__sync_fetch_and_add(n, one);
}

SEC("uprobe/filtered:look") int on_look(struct pt_regs *ctx)
{
	char text[16] = "", comm[16] = "";
	long value;

	if (bpf_probe_read_user_str(text, sizeof(text), (void *)PT_REGS_PARM1(ctx)) == 14 &&
	    text[12] == 'p')
		count(1);
	if (bpf_probe_read_user(&value, sizeof(value), (void *)PT_REGS_PARM2(ctx)) < 0)
		count(2);
	if (!bpf_get_current_comm(comm, sizeof(comm)))
		count(comm[0] == 's' && comm[5] == 'd' && !comm[6] ? 7 : comm[0] ? 3 : 0);
	if (bpf_get_current_uid_gid() != ~0ul)
		count(4);
	if (bpf_send_signal(15 /* SIGTERM */) < 0)
		count(5);
	if (bpf_probe_write_user((void *)PT_REGS_PARM2(ctx), &value, sizeof(value)) < 0)
		count(6);
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
