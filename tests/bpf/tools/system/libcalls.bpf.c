/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts calls of libc's functions in two ways. on_any() is attached to many functions. The other
 * programs are attached to one function each. */
#include "../tool.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u64);
	__type(value, u64);
} by_address SEC(".maps");

struct data {
	u64 count, total_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, struct data);
} by_number SEC(".maps");

SEC("kprobe.multi/[rw]????") int on_any(struct pt_regs *ctx)
{
	u64 ip = bpf_get_func_ip(ctx);

	count_in(&by_address, &ip, 1);
	return 0;
}

static const struct data zero;

static int count(u32 number)
{
	struct data *d = bpf_map_lookup_elem(&by_number, &number);

	if (!d) {
		bpf_map_update_elem(&by_number, &number, &zero, BPF_NOEXIST);
		d = bpf_map_lookup_elem(&by_number, &number);
	}
	if (d)
		__sync_fetch_and_add(&d->count, 1);
	return 0;
}

SEC("kprobe/socket") int on_socket(void *ctx) { return count(0); }
SEC("kprobe/connect") int on_connect(void *ctx) { return count(1); }
SEC("kprobe/accept") int on_accept(void *ctx) { return count(2); }
SEC("kprobe/fsync") int on_fsync(void *ctx) { return count(3); }
SEC("kprobe/getaddrinfo") int on_getaddrinfo(void *ctx) { return count(4); }
SEC("?kprobe/no_such_function") int on_none(void *ctx) { return count(5); }
