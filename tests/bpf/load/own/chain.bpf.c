/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs for tests of tail calls: a test runs `entry`. Except in the case MIXED, the object
 * itself defines which programs the program arrays contain. Each CASE makes a separate object. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define JUMPS(name, entries, ...) \
	struct { \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY); \
		__uint(max_entries, entries); \
		__uint(key_size, 4); \
		__array(values, int (void *)); \
	} name SEC(".maps") = { .values = { __VA_ARGS__ } }
#define PROG(name, ...) SEC("socket") int name(struct __sk_buff *skb) { __VA_ARGS__ }

int entry(struct __sk_buff *skb), middle(struct __sk_buff *skb), target(struct __sk_buff *skb);
#if CASE != OTHER_TYPE && CASE != MIXED
JUMPS(jumps, 2, [1] = (void *)target);
#endif

#if CASE == BEFORE
PROG(entry, bpf_tail_call(skb, &jumps, 1); return 1;)
PROG(target, return 42;)
#elif CASE == AFTER
PROG(target, return 42;)
PROG(entry, bpf_tail_call(skb, &jumps, 1); return 1;)
#elif CASE == UNUSED
PROG(target, return 42;)
PROG(entry, return 1;)
PROG(middle, bpf_tail_call(skb, &jumps, 1); return 2;)
#elif CASE == LONG
JUMPS(more, 3, [0] = (void *)entry, [2] = (void *)middle);
PROG(entry, bpf_tail_call(skb, &more, 2); return 1;)
PROG(middle, bpf_tail_call(skb, &jumps, 0); bpf_tail_call(skb, &jumps, 1); return 2;)
PROG(target, return 42;)
#elif CASE == LOOP
JUMPS(back, 1, (void *)entry);
int calls;
PROG(entry, bpf_tail_call(skb, &jumps, 1); return 1;)
PROG(target, calls++; bpf_tail_call(skb, &back, 0); return calls;)
#elif CASE == REFUSED
PROG(entry, bpf_tail_call(skb, &jumps, 1); return 1;)
PROG(target, return *(int *)(long)skb->len;)
#elif CASE == REFUSED_LATER
JUMPS(more, 1, (void *)middle);
PROG(entry, bpf_tail_call(skb, &more, 0); return 1;)
PROG(middle, bpf_tail_call(skb, &jumps, 1); return 2;)
PROG(target, return *(int *)(long)skb->len;)
#elif CASE == OTHER_TYPE
int packet(struct xdp_md *ctx);
JUMPS(jumps, 1, (void *)packet);
PROG(entry, bpf_tail_call(skb, &jumps, 0); return 1;)
SEC("xdp") int packet(struct xdp_md *ctx) { return ctx->data_end - ctx->data; }
#elif CASE == MIXED
JUMPS(jumps, 1);
PROG(entry, bpf_tail_call(skb, &jumps, 0); return 1;)
SEC("xdp") int packet(struct xdp_md *ctx) { return 99; }
#elif CASE == ASLEEP
PROG(entry, bpf_tail_call(skb, &jumps, 1); return 1;)
SEC("?socket") int target(struct __sk_buff *skb) { return 3; }
#elif CASE == BEYOND
JUMPS(small, 1, (void *)target, (void *)target);
PROG(entry, bpf_tail_call(skb, &small, 0); bpf_tail_call(skb, &jumps, 1); return 1;)
PROG(target, return 42;)
#elif CASE == MAPS
struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, int);
} one SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__uint(key_size, 4);
	__array(values, struct inner);
} outer SEC(".maps") = { .values = { [1] = &one } };
PROG(entry, int zero = 0; int v = 5; bpf_map_update_elem(&one, &zero, &v, 0);
     bpf_tail_call(skb, &jumps, 1); return 1;)
PROG(target, int key = 1; int zero = 0; void *m = bpf_map_lookup_elem(&outer, &key); int *n = NULL;
     if (m) n = bpf_map_lookup_elem(m, &zero);
     return n ? *n : 2;)
#endif
char _license[] SEC("license") = "GPL";
