/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A map's value has a timer. Patchbay doesn't support timers, and the error must name timers. */
#include "../tool.h"

struct value {
	struct bpf_timer timer;
	u64 ticks;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct value);
} timers SEC(".maps");

static int tick(void *map, u32 *key, struct value *v)
{
	v->ticks++;
	return 0;
}

SEC("uprobe/calls:say") int on_say(void *ctx)
{
	u32 zero = 0;
	struct value *v = bpf_map_lookup_elem(&timers, &zero);

	if (!v)
		return 0;
	bpf_timer_init(&v->timer, &timers, 1 /* CLOCK_MONOTONIC */);
	bpf_timer_set_callback(&v->timer, tick);
	bpf_timer_start(&v->timer, 1000000, 0);
	return 0;
}
