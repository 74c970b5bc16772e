/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two eBPF programs that count calls. The test chooses the first program's section by -DSECTION. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, int);
	__type(value, long);
} counts SEC(".maps");

static int count(int key)
{
	long *n = bpf_map_lookup_elem(&counts, &key);

	if (n)
		__sync_fetch_and_add(n, 1);
	return 1;
}

SEC(SECTION) int probe(void *ctx)
{
	return count(0);
}

/* the target always has main(), so this program is attached whatever SECTION is */
SEC("uprobe/links:main") int begins(void *ctx)
{
	return count(1);
}

char _license[] SEC("license") = "GPL";
