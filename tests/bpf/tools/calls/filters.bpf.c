/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Has filters that are common in tools: by process, user, name, cgroup. Tools also read the
 * kernel's task_struct to find the parent process. Patchbay accepts this read, but the read fails
 * and gives 0 as the parent's id. */
#include "../tool.h"
#include <bpf/bpf_core_read.h>

struct task_struct {
	int tgid;
	struct task_struct *real_parent;
} __attribute__((preserve_access_index));

const volatile u32 only_tgid = 0;
const volatile u32 only_uid = -1;
const volatile bool filter_cgroup = false;
const volatile char only_comm[16] = "";

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__type(key, u32);
	__type(value, u32);
	__uint(max_entries, 1);
} cgroups SEC(".maps");

u64 calls, passed, mains, boots;
s64 parent;

static __always_inline bool same_name(void)
{
	char comm[16];

	if (bpf_get_current_comm(comm, sizeof(comm)))
		return false;
	for (int i = 0; i < 16; i++) {
		if (comm[i] != only_comm[i])
			return false;
		if (!comm[i])
			break;
	}
	return true;
}

SEC("uprobe/calls:leaf") int BPF_KPROBE(on_leaf)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 id = bpf_get_current_pid_tgid(), now;

	calls++;
	if (filter_cgroup && !bpf_current_task_under_cgroup(&cgroups, 0))
		return 0;
	if (only_tgid && only_tgid != id >> 32)
		return 0;
	if (only_uid != (u32)-1 && only_uid != (u32)bpf_get_current_uid_gid())
		return 0;
	if (only_comm[0] && !same_name())
		return 0;
	passed++;
	mains += id >> 32 == (u32)id;
	now = bpf_ktime_get_ns();
	boots += bpf_ktime_get_boot_ns() >= now;
	parent = BPF_CORE_READ(task, real_parent, tgid);
	return 0;
}
