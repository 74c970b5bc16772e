/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One eBPF program. Macros choose its variant, and part_bpf.py compiles each variant to an object.
 * With NOTHING the program returns at once. With COUNT it counts calls in a hash. With neither, it
 * updates a hash. With RETURN it runs at the function's return, not at its entry. */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>

#ifndef NOTHING
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, int);
	__type(value, long);
} map SEC(".maps");
#endif

#ifdef RETURN
SEC("kretprobe/leaf")
#else
SEC("kprobe/leaf")
#endif
int on_leaf(struct pt_regs *ctx)
{
#ifndef NOTHING
	int key = 1;
	long one = 1;
#ifdef COUNT
	long *v = bpf_map_lookup_elem(&map, &key);

	if (v) {
		__sync_fetch_and_add(v, 1);
		return 0;
	}
#endif
	bpf_map_update_elem(&map, &key, &one, BPF_ANY);
#endif
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
