/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* This machine's kernel as the reference implementation. Tests that need the kernel are skipped
 * without root. */
#ifndef TESTS_BPF_KERNEL_H
#define TESTS_BPF_KERNEL_H
#include <errno.h>
#include <linux/bpf.h>
#include <linux/membarrier.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * After a grace period, a work item of the kernel frees a program's code. This work item takes the
 * lock that also protects the allocation of code. If more than 1,024 of these work items are
 * queued, an allocation may wait for its CPU's work queue (purge_vmap_node) and never end. After
 * that, no program can be loaded on the machine. This was seen with Linux 6.18. So a test that
 * loads thousands of programs waits for a grace period at regular intervals.
 */
#define LOADS_BETWEEN_GRACE_PERIODS	64

static inline void kernel_pace_loads(void)
{
	static unsigned int loads;

	if (++loads % LOADS_BETWEEN_GRACE_PERIODS == 0)
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

static inline long kernel_bpf(int cmd, union bpf_attr *a)
{
	if (cmd == BPF_PROG_LOAD)
		kernel_pace_loads();
	return syscall(SYS_bpf, cmd, a, sizeof(*a));
}

/* Returns a descriptor, or -errno. log may be NULL. */
static inline int kernel_load(uint32_t type, uint32_t attach_type, const struct bpf_insn *insns,
			      uint32_t nr, char *log, uint32_t log_size)
{
	union bpf_attr a;
	long fd;

	memset(&a, 0, sizeof(a));
	a.prog_type = type;
	a.expected_attach_type = attach_type;
	a.insns = (uintptr_t)insns;
	a.insn_cnt = nr;
	a.license = (uintptr_t)"GPL";
	if (log) {
		log[0] = 0;
		a.log_buf = (uintptr_t)log;
		a.log_size = log_size;
		a.log_level = 1;
	}
	fd = kernel_bpf(BPF_PROG_LOAD, &a);
	return fd < 0 ? -errno : (int)fd;
}

static inline bool kernel_is_there(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K }, { .code = BPF_JMP | BPF_EXIT },
	};
	int fd = kernel_load(BPF_PROG_TYPE_SOCKET_FILTER, 0, insns, 2, NULL, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}
#endif
