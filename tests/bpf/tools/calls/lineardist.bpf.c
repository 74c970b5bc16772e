/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes a linear histogram of results. The map's size is the number of steps; user space sets the
 * size. */
#include "../tool.h"

const volatile u32 first = 7;
const volatile u32 width = 5;
const volatile u32 most = 16;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, u64);
} steps SEC(".maps");

/* `below` counts results below the first step, `above` counts results above the last step */
u64 below, above;

SEC("uretprobe/calls:work") int BPF_KRETPROBE(on_work, u32 rest)
{
	u32 slot;
	u64 *v;

	if (rest < first) {
		__sync_fetch_and_add(&below, 1);
		return 0;
	}
	slot = (rest - first) / width;
	v = slot < most ? bpf_map_lookup_elem(&steps, &slot) : 0;
	if (v)
		*v += 1;
	else
		__sync_fetch_and_add(&above, 1);
	return 0;
}
