/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers for time, random numbers, processors, and the current task. */
#include "base/base.h"
#include "bpf/helper/helper_priv.h"

PB_BPF_HELPER(ktime_get_ns)
{
	return run->host->clock(run, PB_BPF_MONOTONIC);
}

PB_BPF_HELPER(ktime_get_boot_ns)
{
	return run->host->clock(run, PB_BPF_BOOTTIME);
}

PB_BPF_HELPER(ktime_get_coarse_ns)
{
	return run->host->clock(run, PB_BPF_COARSE);
}

PB_BPF_HELPER(ktime_get_tai_ns)
{
	return run->host->clock(run, PB_BPF_TAI);
}

PB_BPF_HELPER(jiffies64)
{
	return run->host->clock(run, PB_BPF_MONOTONIC) / (1000000000 / PB_BPF_HZ);
}

/* SplitMix64: adds an odd constant to the state, and returns the mixed bits of the former state.
 * All threads share the state. The addition is atomic, so that two calls don't return the bits of
 * the same state. */
PB_BPF_HELPER(get_prandom_u32)
{
	static uint64_t state;
	const uint64_t step = 0x9e3779b97f4a7c15;
	uint64_t x = __atomic_fetch_add(&state, step, __ATOMIC_RELAXED);

	if (!x) {			/* the first call: seed the state */
		x = pb_cpu_counter() | 1;
		__atomic_fetch_add(&state, x, __ATOMIC_RELAXED);
	}
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (uint32_t)(x ^ x >> 31);
}

PB_BPF_HELPER(get_smp_processor_id)
{
	return run->host->cpu(run);
}

PB_BPF_HELPER(get_numa_node_id)
{
	return run->host->numa_node ? run->host->numa_node(run) : 0;
}

PB_BPF_HELPER(get_current_pid_tgid)
{
	return run->host->pid_tgid(run);
}

PB_BPF_HELPER(get_current_uid_gid)
{
	return run->host->uid_gid(run);
}

/* r1 buffer, r2 its size */
PB_BPF_HELPER(get_current_comm)
{
	char comm[PB_BPF_COMM] = { 0 }, *to = PB_BPF_PTR(r1);
	uint32_t size = (uint32_t)r2, n = 0;

	run->host->comm(run, comm);
	while (n < PB_BPF_COMM - 1 && n < size - 1 && comm[n]) {
		to[n] = comm[n];
		n++;
	}
	memset(to + n, 0, size - n);
	return 0;
}

PB_BPF_HELPER(get_current_task)
{
	return run->host->task ? run->host->task(run) : 0;
}

/* r1 device, r2 inode, r3 struct bpf_pidns_info, r4 its size */
PB_BPF_HELPER(get_ns_current_pid_tgid)
{
	int err = -EINVAL;

	if (r4 == sizeof(struct bpf_pidns_info) && (uint32_t)r1 == r1 && run->host->ns_pid_tgid)
		err = run->host->ns_pid_tgid(run, r1, r2, PB_BPF_PTR(r3));
	if (err)
		memset(PB_BPF_PTR(r3), 0, r4);
	return (uint64_t)(int64_t)err;
}

static uint64_t own_cgroup(struct pb_bpf_run *run, uint32_t level)
{
	return run->host->cgroup ? run->host->cgroup(run, level) : 0;
}

PB_BPF_HELPER(get_current_cgroup_id)
{
	return own_cgroup(run, ~0u);
}

PB_BPF_HELPER(get_current_ancestor_cgroup_id)
{
	return r1 > 0x7fffffff ? 0 : own_cgroup(run, (uint32_t)r1);
}

/* r1 a cgroup_array (its objects are ids of cgroups), r2 index */
PB_BPF_HELPER(current_task_under_cgroup)
{
	struct pb_bpf_map *map = PB_BPF_PTR(r1);
	uint32_t index = (uint32_t)r2;
	uint64_t *cgroup, id;

	if (index >= map->attr.max_entries)
		return PB_BPF_ERR(E2BIG);
	cgroup = map->ops->lookup(map, &index, run);
	if (!cgroup)
		return PB_BPF_ERR(EAGAIN);
	for (uint32_t level = 0; (id = own_cgroup(run, level)); level++)
		if (id == *cgroup)
			return 1;
	return 0;
}

static uint64_t send(struct pb_bpf_run *run, uint64_t sig, bool thread)
{
	if ((uint32_t)sig > 64)
		return PB_BPF_ERR(EINVAL);
	if (!run->host->signal)
		return PB_BPF_ERR(EPERM);
	return (uint64_t)(int64_t)run->host->signal(run, (uint32_t)sig, thread);
}

PB_BPF_HELPER(send_signal)
{
	return send(run, r1, false);
}

PB_BPF_HELPER(send_signal_thread)
{
	return send(run, r1, true);
}
