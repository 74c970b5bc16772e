/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The environment of a run: functions that the process that runs programs supplies to helpers.
 * host_linux.c has a host that uses the kernel. Programs run in signal handlers, nested, and on
 * several threads at once. Helpers call the host's functions in all these contexts, so the
 * functions allocate nothing and never wait. Some members may be NULL. The comment at such a member
 * says what happens if it is NULL ("NULL: ..."). If only a value follows "NULL:", the helper
 * returns this value.
 */
#ifndef PB_BPF_CORE_HOST_H
#define PB_BPF_CORE_HOST_H
#include <linux/bpf.h>
#include "bpf/core/program.h"

struct pb_bpf_map;
struct pt_regs;

enum pb_bpf_clock {
	PB_BPF_MONOTONIC, PB_BPF_BOOTTIME, PB_BPF_COARSE, PB_BPF_TAI,
	PB_BPF_NR_CLOCKS
};

#define PB_BPF_HZ	250		/* ticks of bpf_jiffies64 per second */
#define PB_BPF_MAX_STACK 127		/* perf_event_max_stack */
#define PB_BPF_COMM	16

struct pb_bpf_host {
	/* Returns the time in nanoseconds. Never NULL */
	uint64_t (*clock)(struct pb_bpf_run *run, enum pb_bpf_clock clock);
	/*
	 * Both functions read memory that may not be mapped. read returns 0 or -EFAULT. read_str
	 * copies a string with its 0, at most n bytes. If the string is longer, the last byte of
	 * the copy becomes 0. read_str returns the copy's length with the 0, or -EFAULT. Never NULL
	 */
	int (*read)(struct pb_bpf_run *run, void *to, uint64_t from, uint32_t n);
	int64_t (*read_str)(struct pb_bpf_run *run, char *to, uint64_t from, uint32_t n);
	/* Writes to memory that may not be mapped. Returns 0 or -EFAULT. NULL: -EPERM */
	int (*write)(struct pb_bpf_run *run, uint64_t to, const void *from, uint32_t n);
	/* These four functions supply the results of bpf_get_current_pid_tgid,
	 * bpf_get_current_uid_gid, bpf_get_current_comm and bpf_get_smp_processor_id. Never NULL */
	uint64_t (*pid_tgid)(struct pb_bpf_run *run);
	uint64_t (*uid_gid)(struct pb_bpf_run *run);
	void (*comm)(struct pb_bpf_run *run, char comm[PB_BPF_COMM]);
	uint32_t (*cpu)(struct pb_bpf_run *run);
	/* Returns the number of the processor's NUMA node. NULL: 0 */
	uint32_t (*numa_node)(struct pb_bpf_run *run);
	/* Returns a number that identifies the thread, in place of the address of the kernel's
	 * structure. Nothing is mapped at this address and at the 16 KB after it. NULL: 0 */
	uint64_t (*task)(struct pb_bpf_run *run);
	/* Writes the thread's ids to info, as they are in the PID namespace with this device and
	 * inode. NULL: -EINVAL */
	int (*ns_pid_tgid)(struct pb_bpf_run *run, uint64_t dev, uint64_t ino,
			   struct bpf_pidns_info *info);
	/* Sends a signal to the thread, or to the process. Returns 0 or -errno. NULL: -EPERM */
	int (*signal)(struct pb_bpf_run *run, uint32_t sig, bool thread);
	/* If level is ~0, returns the id of the thread's cgroup. Otherwise returns the id of an
	 * ancestor of the thread's cgroup: the ancestor that is `level` levels below the root. 0:
	 * there is none. NULL: 0; programs that need it can't be attached (fixup.h) */
	uint64_t (*cgroup)(struct pb_bpf_run *run, uint32_t level);
	/* Outputs `len` bytes of text from bpf_trace_printk or bpf_trace_vprintk. NULL: output is
	 * discarded */
	void (*trace)(struct pb_bpf_run *run, const char *text, uint32_t len);
	/* Writes the symbol of an address, with +offset/size if `offset` is set. Returns the number
	 * of written bytes, at most n with the final 0. 0: the symbol is unknown. NULL: 0 */
	uint32_t (*symbol)(struct pb_bpf_run *run, char *to, uint32_t n, uint64_t addr,
			   bool offset);
	/*
	 * Outputs a record to the event `object`, which is at `index` in a perf_event_array. The
	 * record has two pieces: `data`, and `more` from a packet. The second piece may be empty.
	 * Returns 0 or -errno. NULL: -EOPNOTSUPP
	 */
	int (*event_output)(struct pb_bpf_run *run, struct pb_bpf_map *map, uint32_t index,
			    void *object, const void *data, uint64_t size, const void *more,
			    uint64_t more_size);
	/* Reads the event `object` of a perf_event_array. NULL: -EOPNOTSUPP; programs that need it
	 * can't be attached */
	int (*event_read)(struct pb_bpf_run *run, void *object, struct bpf_perf_event_value *value);
	/* Reads the event that a perf_event program is attached to. NULL: -EINVAL */
	int (*event_own)(struct pb_bpf_run *run, struct bpf_perf_event_value *value);
	/*
	 * Writes at most n return addresses, innermost first, of the stack that regs describe. If
	 * regs is NULL, takes the current stack. Returns the number of addresses, or -EFAULT. NULL:
	 * the helper follows frame pointers
	 */
	int (*stack)(struct pb_bpf_run *run, const struct pt_regs *regs, uint64_t *ips, uint32_t n);
	/* Returns registers for a program whose context has no registers (raw tracepoints). NULL:
	 * none */
	const struct pt_regs *(*regs)(struct pb_bpf_run *run);
	/* Returns the address of the function to whose entry the program is attached. 0: there is
	 * none. NULL: 0 */
	uint64_t (*func_ip)(struct pb_bpf_run *run);
	/* func_arg gets argument n of the traced function, as it was at the function's entry.
	 * func_ret gets the function's result. Both functions return 0, -EINVAL or -EOPNOTSUPP.
	 * func_arg_cnt returns the number of the traced function's arguments. NULL: -EINVAL for
	 * func_arg, -EOPNOTSUPP for func_ret, 0 for func_arg_cnt */
	int (*func_arg)(struct pb_bpf_run *run, uint32_t n, uint64_t *value);
	int (*func_ret)(struct pb_bpf_run *run, uint64_t *value);
	uint32_t (*func_arg_cnt)(struct pb_bpf_run *run);
	/* Makes the traced function return `value`: at the function's entry without entering it, at
	 * its return in place of its result. NULL: the helper changes the registers instead, as at
	 * an entry */
	void (*override)(struct pb_bpf_run *run, uint64_t value);
	/*
	 * `takes` is called when the run acquires an object that the run must release. `gives` is
	 * called when the run releases the object. Such an object is a reserved record of a ring
	 * buffer, or something that the run takes by storing `word` in the map: a value whose lock
	 * the run holds, the lock of a map's writers, a bucket of stacks, or a word that announces
	 * a change. For all of them but records, `takes` is called before the run tries to store
	 * the word, and `gives` after the release. The host needs these calls because a run that
	 * ends by a jump (longjmp) releases nothing. NULL: not called
	 */
	void (*takes)(struct pb_bpf_run *run, struct pb_bpf_map *map, void *what, uint64_t word);
	void (*gives)(struct pb_bpf_run *run, void *what);
	/* Called when a tail call fails because the stack has too little room. NULL: not called */
	void (*no_room)(struct pb_bpf_run *run);
	/* Sends a copy of the packet to a device. Returns 0 or -errno. NULL: -EINVAL (no such
	 * device) */
	int (*clone)(struct pb_bpf_run *run, uint32_t ifindex, uint64_t flags);
	void *arg;			/* for the host's use */
};

/* A host that gets everything from the kernel, by system calls and the vDSO. The host has no trace
 * output and no events. Context: the first call must not be in a signal handler. */
const struct pb_bpf_host *pb_bpf_host_linux(void);
#endif
