// SPDX-License-Identifier: GPL-2.0-only
/* For programs of run_harm: the map in which they count their runs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, long);
} runs SEC(".maps");

static inline void count_run(void)
{
	int key = 0;
	long *n = bpf_map_lookup_elem(&runs, &key);

	if (n)
		__sync_fetch_and_add(n, 1);
}
