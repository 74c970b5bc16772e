/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The common part of the tools: headers, log2 as in libbpf-tools, counting in a map. */
#include <stdbool.h>
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

#define SLOTS	32

/*
 * Returns the index of the highest set bit, or 0 for v = 0. Comparisons give the bits of the
 * result, and `|` combines the bits. A verifier that loses the bounds at a `|` rejects programs
 * that use the result as an array index.
 */
static __always_inline u32 log2_of_u32(u32 v)
{
	u32 bits = 0, step;

	step = (v >= 1u << 16) << 4;
	v >>= step;
	bits |= step;
	step = (v >= 1u << 8) << 3;
	v >>= step;
	bits |= step;
	step = (v >= 1u << 4) << 2;
	v >>= step;
	bits |= step;
	step = (v >= 1u << 2) << 1;
	v >>= step;
	bits |= step;
	return bits | v >> 1;
}

static __always_inline u64 log2_of(u64 v)
{
	u32 high = v >> 32;

	return high ? 32 + log2_of_u32(high) : log2_of_u32((u32)v);
}

/* Returns the slot of a value in a histogram. Values that are too large go to the last slot. */
static __always_inline u64 slot_of(u64 v)
{
	u64 slot = log2_of(v);

	return slot < SLOTS ? slot : SLOTS - 1;
}

static __always_inline void count_in(void *map, const void *key, u64 by)
{
	u64 zero = 0, *v = bpf_map_lookup_elem(map, key);

	if (!v) {
		bpf_map_update_elem(map, key, &zero, BPF_NOEXIST);
		v = bpf_map_lookup_elem(map, key);
	}
	if (v)
		__sync_fetch_and_add(v, by);
}

char LICENSE[] SEC("license") = "GPL";
