/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sections of newer libbpf versions. Two programs attach to all functions that match a glob. The
 * other programs aren't attached. `asleep` isn't loaded, because its section begins with "?". The
 * rest have sections that Patchbay can't attach. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, int);
	__type(value, long);
} counts SEC(".maps");

static int count(int key)
{
	long *n = bpf_map_lookup_elem(&counts, &key);

	if (n)
		__sync_fetch_and_add(n, 1);
	return 1;
}

SEC("uprobe.multi/target:[an][di][dn]*") int entries(void *ctx)		/* matches add and nine */
{
	return count(0);
}
SEC("uretprobe.multi.s/target:ad?") int returns(void *ctx)
{
	return count(1);
}
#define LEFT_OUT(name, section) SEC(section) int name(void *ctx) { return 0; }
LEFT_OUT(ingress, "tc/ingress")
LEFT_OUT(peer, "netkit/peer")
LEFT_OUT(user_session, "uprobe.session/target:add")
LEFT_OUT(session, "kprobe.session/add")
LEFT_OUT(marker, "usdt/target:a:b")
LEFT_OUT(read_call, "ksyscall/read")
LEFT_OUT(point, "tp/syscalls/sys_enter_read")
LEFT_OUT(calls, "syscall")
LEFT_OUT(asleep, "?uprobe/target:add")
char _license[] SEC("license") = "GPL";
