/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes a record at the end of each connection. The record says how long the connection was open,
 * and how many bytes were sent and received. */
#include "../tool.h"
#include <linux/in.h>

struct conn {
	u64 ns, sent, received;
	u32 address;
	__be16 port;
	int fd;
};

struct under_way {
	u64 address;
	int fd;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u64);
	__type(value, struct under_way);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, int);
	__type(value, struct conn);
} conns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} closed SEC(".maps");

const volatile u32 family = 2;	/* AF_INET */

static int begin(int fd, u64 address)
{
	struct under_way u = { .address = address, .fd = fd };
	u64 id = bpf_get_current_pid_tgid();

	bpf_map_update_elem(&calls, &id, &u, BPF_ANY);
	return 0;
}

static bool take(struct under_way *u)
{
	u64 id = bpf_get_current_pid_tgid();
	struct under_way *found = bpf_map_lookup_elem(&calls, &id);

	if (!found)
		return false;
	*u = *found;
	bpf_map_delete_elem(&calls, &id);
	return true;
}

SEC("uprobe/libc.so.6:connect") int BPF_KPROBE(on_connect, int fd, u64 address)
{
	return begin(fd, address);
}

SEC("uretprobe/libc.so.6:connect") int BPF_KRETPROBE(on_connected, int error)
{
	struct sockaddr_in a = { 0 };
	struct under_way u;
	struct conn c;

	if (!take(&u) || error)
		return 0;
	if (bpf_probe_read_user(&a, sizeof(a), (void *)u.address) || a.sin_family != family)
		return 0;
	__builtin_memset(&c, 0, sizeof(c));
	c.ns = bpf_ktime_get_ns();
	c.address = a.sin_addr.s_addr;
	c.port = a.sin_port;
	c.fd = u.fd;
	bpf_map_update_elem(&conns, &u.fd, &c, BPF_ANY);
	return 0;
}

/* send and recv have no address, so `address` has another meaning for them: 0 for send, 1 for
 * recv */
SEC("uprobe/libc.so.6:send") int BPF_KPROBE(on_send, int fd) { return begin(fd, 0); }
SEC("uprobe/libc.so.6:recv") int BPF_KPROBE(on_recv, int fd) { return begin(fd, 1); }

static int transferred(s64 bytes)
{
	struct under_way u;
	struct conn *c;

	if (!take(&u) || bytes <= 0)
		return 0;
	c = bpf_map_lookup_elem(&conns, &u.fd);
	if (c)
		__sync_fetch_and_add(u.address ? &c->received : &c->sent, bytes);
	return 0;
}

SEC("uretprobe/libc.so.6:send") int BPF_KRETPROBE(on_sent, s64 bytes) { return transferred(bytes); }
SEC("uretprobe/libc.so.6:recv")
int BPF_KRETPROBE(on_received, s64 bytes) { return transferred(bytes); }

SEC("uprobe/libc.so.6:close") int BPF_KPROBE(on_close, int fd)
{
	struct conn *c = bpf_map_lookup_elem(&conns, &fd), *e;

	if (!c)
		return 0;
	e = bpf_ringbuf_reserve(&closed, sizeof(*e), 0);
	if (e) {
		*e = *c;
		e->ns = bpf_ktime_get_ns() - c->ns;
		bpf_ringbuf_submit(e, 0);
	}
	bpf_map_delete_elem(&conns, &fd);
	return 0;
}
