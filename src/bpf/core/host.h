/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The environment of a run. The process that runs programs supplies one; host_linux.c has one
 * that asks the kernel. Functions are called wherever programs run: in signal
 * handlers, nested, on several threads at once; they allocate nothing and wait for
 * nobody. One that is NULL isn't there: the helper says what the comment says.
 */
#ifndef PB_BPF_CORE_HOST_H
#define PB_BPF_CORE_HOST_H
#include <linux/bpf.h>
#include "bpf/core/program.h"

struct pb_bpf_map;
struct pt_regs;

enum pb_bpf_clock { PB_BPF_MONOTONIC, PB_BPF_BOOTTIME, PB_BPF_COARSE, PB_BPF_TAI };

#define PB_BPF_HZ	250		/* of bpf_jiffies64 */
#define PB_BPF_MAX_STACK 127		/* perf_event_max_stack */
#define PB_BPF_COMM	16

struct pb_bpf_host {
	/* Nanoseconds. Never NULL */
	uint64_t (*clock)(struct pb_bpf_run *run, enum pb_bpf_clock clock);
	/*
	 * Memory that may not be there: 0 or -EFAULT. read_str copies a text with its 0, at
	 * most n bytes, of which the last is a 0 then; its length with the 0. Never NULL
	 */
	int (*read)(struct pb_bpf_run *run, void *to, uint64_t from, uint32_t n);
	int64_t (*read_str)(struct pb_bpf_run *run, char *to, uint64_t from, uint32_t n);
	/* NULL: -EPERM */
	int (*write)(struct pb_bpf_run *run, uint64_t to, const void *from, uint32_t n);
	/* As the helpers return them. Never NULL */
	uint64_t (*pid_tgid)(struct pb_bpf_run *run);
	uint64_t (*uid_gid)(struct pb_bpf_run *run);
	void (*comm)(struct pb_bpf_run *run, char comm[PB_BPF_COMM]);
	uint32_t (*cpu)(struct pb_bpf_run *run);
	/* NULL: 0 */
	uint32_t (*numa_node)(struct pb_bpf_run *run);
	/* Stands for the thread; address of something to read from, or any number. NULL: 0 */
	uint64_t (*task)(struct pb_bpf_run *run);
	/* In the namespace that this device and inode mean; NULL: -EINVAL */
	int (*ns_pid_tgid)(struct pb_bpf_run *run, uint64_t dev, uint64_t ino,
			   struct bpf_pidns_info *info);
	/* NULL: -EPERM */
	int (*signal)(struct pb_bpf_run *run, uint32_t sig, bool thread);
	/* The cgroup's id; level: that many below the root, ~0: its own. NULL, or none: 0 */
	uint64_t (*cgroup)(struct pb_bpf_run *run, uint32_t level);
	/* NULL: output is discarded */
	void (*trace)(struct pb_bpf_run *run, const char *text, uint32_t len);
	/* Name of a place, with +offset/size if wanted; bytes written, at most n with a 0.
	 * 0, or NULL: unknown */
	uint32_t (*symbol)(struct pb_bpf_run *run, char *to, uint32_t n, uint64_t addr,
			   bool offset);
	/*
	 * A record for what `object` stands for, an event in a perf_event_array at index; in
	 * two pieces, of which the second (of a packet) may be empty. 0 or -errno. NULL:
	 * -EOPNOTSUPP
	 */
	int (*event_output)(struct pb_bpf_run *run, struct pb_bpf_map *map, uint32_t index,
			    void *object, const void *data, uint64_t size, const void *more,
			    uint64_t more_size);
	int (*event_read)(struct pb_bpf_run *run, void *object, struct bpf_perf_event_value *value);
	/* The event that a perf_event program belongs to. NULL: -EINVAL */
	int (*event_own)(struct pb_bpf_run *run, struct bpf_perf_event_value *value);
	/*
	 * Return addresses from regs (NULL: from here), innermost first, at most n; how many,
	 * or -EFAULT. NULL: frame pointers are followed
	 */
	int (*stack)(struct pb_bpf_run *run, const struct pt_regs *regs, uint64_t *ips, uint32_t n);
	/* Registers of the program's context, if that isn't them (raw tracepoints). NULL: none */
	const struct pt_regs *(*regs)(struct pb_bpf_run *run);
	/* Where the function begins that the program is attached to the entry of. NULL, or 0:
	 * none */
	uint64_t (*func_ip)(struct pb_bpf_run *run);
	/* Arguments of that function, as at its entry, and its result: 0, -EINVAL, -EOPNOTSUPP */
	int (*func_arg)(struct pb_bpf_run *run, uint32_t n, uint64_t *value);
	int (*func_ret)(struct pb_bpf_run *run, uint64_t *value);
	uint32_t (*func_arg_cnt)(struct pb_bpf_run *run);
	/* The function isn't entered and returns that. NULL: the registers are changed so */
	void (*override)(struct pb_bpf_run *run, uint64_t value);
	/*
	 * What the run has until it gives it back: a record reserved in a ring buffer, a value
	 * whose lock it holds. A run that ends by a jump gives nothing back. NULL: not called
	 */
	void (*takes)(struct pb_bpf_run *run, struct pb_bpf_map *map, void *what);
	void (*gives)(struct pb_bpf_run *run, void *what);
	/* A copy of the packet goes out there: 0 or -errno. NULL: -EINVAL (no such device) */
	int (*clone)(struct pb_bpf_run *run, uint32_t ifindex, uint64_t flags);
	void *arg;			/* its own */
};

/* One that asks the kernel for everything, with system calls and the vDSO; no trace, no
 * events. Context: the first call not in a signal handler. */
const struct pb_bpf_host *pb_bpf_host_linux(void);
#endif
