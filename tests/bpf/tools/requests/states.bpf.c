/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The attached program, on_step(), gets the number of a state as its argument. It makes a tail call
 * to the program that the map `states` has for this number. If the map has no program for the
 * number, the tail call fails. */
#include "../tool.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 8);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

enum { FELL_THROUGH = 5, CHAINED };

static __always_inline int count(u32 which)
{
	u64 *v = bpf_map_lookup_elem(&counts, &which);

	if (v)
		*v += 1;
	return 0;
}

int state_one(struct pt_regs *ctx);
int state_two(struct pt_regs *ctx);
int state_three(struct pt_regs *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 8);
	__uint(key_size, sizeof(u32));
	__array(values, int(struct pt_regs *));
} states SEC(".maps") = {
	.values = { [1] = (void *)&state_one, [2] = (void *)&state_two,
		[3] = (void *)&state_three },
};

SEC("uprobe") int state_one(struct pt_regs *ctx)
{
	return count(1);
}

SEC("uprobe") int state_two(struct pt_regs *ctx)
{
	return count(2);
}

/* a chain: state_three continues in state_one, which doesn't return to state_three */
SEC("uprobe") int state_three(struct pt_regs *ctx)
{
	count(3);
	bpf_tail_call(ctx, &states, 1);
	return count(CHAINED);
}

SEC("uprobe/requests:step") int BPF_KPROBE(on_step, u32 state)
{
	bpf_tail_call(ctx, &states, state);
	return count(FELL_THROUGH);
}
