/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For embed.c: counts requests by their size. Returns 0 for a request that is too large. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);		/* log2 of the size, rounded down: the size is less than
					 * 2 << key */
	__type(value, __u64);
} by_size SEC(".maps");

const volatile __u64 too_large = 4000;

SEC("raw_tp") int on_request(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 bytes = ctx->args[1], one = 1, *count;
	__u32 key = 0;

	if (bytes > too_large)
		return 0;
	for (int i = 0; i < 12; i++)
		key += (2ull << i) <= bytes;
	count = bpf_map_lookup_elem(&by_size, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		bpf_map_update_elem(&by_size, &key, &one, BPF_NOEXIST);
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
