/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program that is attached to a function uses a spin lock. The kernel refuses the program, so
 * Patchbay must refuse it, too. */
#include "../tool.h"

struct value {
	struct bpf_spin_lock lock;
	u32 n;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct value);
} values SEC(".maps");

SEC("uprobe/calls:say") int on_say(void *ctx)
{
	u32 zero = 0;
	struct value *v = bpf_map_lookup_elem(&values, &zero);

	if (!v)
		return 0;
	bpf_spin_lock(&v->lock);
	v->n++;
	bpf_spin_unlock(&v->lock);
	return 0;
}
