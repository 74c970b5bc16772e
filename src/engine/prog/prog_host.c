/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host of attached eBPF programs: it serves helpers by system calls, or from the agent's own
 * data. The output of programs goes to the observer's ring buffer.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include "abi/progs.h"
#include "arch/arch.h"
#include "base/auxv.h"
#include "base/mem.h"
#include "base/sys.h"
#include "bpf/core/host.h"
#include "bpf/core/textbuf.h"
#include "bpf/map/map.h"
#include "bpf/map/map_ringbuf.h"
#include "engine/graph/calls.h"
#include "engine/clock.h"
#include "engine/prog/prog.h"
#include "engine/prog/prog_priv.h"
#include "engine/graph/thread.h"
#include "engine/uaccess.h"

#define MAX_TEXT	1024
#define MAX_EVENT	65536
#define CODE_ROW	16

static struct pb_bpf_map *output, *all_maps;
static struct pb_progs_counts *counts;	/* counts that the observer reads */
static struct pb_bpf_host host;

static uint64_t pid_tgid(struct pb_bpf_run *run)
{
	return (uint64_t)pb_process->pid << 32 | run->thread;
}

static int put(struct pb_bpf_run *run, uint32_t kind, uint32_t map, const void *a, uint64_t na,
	       const void *b, uint64_t nb)
{
	struct pb_progs_output *record;

	if (!output)
		return -ENOENT;
	if (na + nb > MAX_EVENT)
		return -E2BIG;
	record = pb_bpf_ringbuf_reserve(output, sizeof(*record) + na + nb, 0);
	if (!record) {
		if (counts)
			__atomic_add_fetch(&counts->outputs, 1, __ATOMIC_RELAXED);
		return -ENOSPC;
	}
	pb_prog_takes(run, output, record, 0);
	*record = (struct pb_progs_output){
		.kind = kind, .map = map, .pid = pb_process->pid, .tid = run->thread,
		.cpu = host.cpu(run), .ns = host.clock(run, PB_BPF_MONOTONIC), .size = na + nb,
	};
	memcpy(record + 1, a, na);
	if (nb)
		memcpy((char *)(record + 1) + na, b, nb);
	pb_prog_gives(run, record);
	pb_bpf_ringbuf_submit(output, record, BPF_RB_NO_WAKEUP, false);
	return 0;
}

static void trace(struct pb_bpf_run *run, const char *text, uint32_t len)
{
	put(run, PB_PROGS_TEXT, 0, text, len < MAX_TEXT ? len : MAX_TEXT, NULL, 0);
}

static int event_output(struct pb_bpf_run *run, struct pb_bpf_map *map, uint32_t index,
			void *object,
			const void *data, uint64_t size, const void *more, uint64_t more_size)
{
	return put(run, PB_PROGS_EVENT, (uint32_t)(map - all_maps), data, size, more, more_size);
}

static void no_room(struct pb_bpf_run *run)
{
	__atomic_add_fetch(pb_prog_missed, 1, __ATOMIC_RELAXED);
}

static uint64_t func_ip(struct pb_bpf_run *run)
{
	return pb_prog_run_of(run)->at->ip;
}

/* At an entry, the function isn't entered. At a return, the function has run, and only its result
 * is replaced, as under a kernel's kretprobe. */
static void override(struct pb_bpf_run *run, uint64_t value)
{
	struct pb_prog_run *r = pb_prog_run_of(run);

	if (r->at_entry) {
		r->overridden = true;
		r->value = value;
	} else {
		pb_regs_set_result(run->ctx, value);
	}
}

/*
 * Walks frames by frame pointers. At a function's entry, the frame pointer is still that of the
 * caller. So the first address in the caller is the return address at the stack pointer.
 */
static int walk_stack(struct pb_bpf_run *run, const struct pt_regs *regs, uint64_t *ips, uint32_t n)
{
	uint64_t frame[2];
	uint32_t nr = 0;

	if (nr < n)
		ips[nr++] = pb_regs_pc(regs);
	if (nr < n && pb_prog_run_of(run)->at_entry && !host.read(run, frame, pb_regs_sp(regs), 8))
		ips[nr++] = frame[0];
	for (uint64_t fp = pb_regs_fp(regs); nr < n && !(fp & 7); fp = frame[0]) {
		if (host.read(run, frame, fp, sizeof(frame)) || !frame[1])
			break;
		ips[nr++] = frame[1];
		if (frame[0] <= fp)
			break;
	}
	return (int)nr;
}

/* Returns the time. If the time must not be read any more, returns the last time that a thread has
 * stored for this clock. */
static uint64_t now(struct pb_bpf_run *run, enum pb_bpf_clock which)
{
	static uint64_t last[PB_BPF_NR_CLOCKS];
	uint64_t time;

	if (!pb_clock_ticks())
		return __atomic_load_n(&last[which], __ATOMIC_RELAXED);
	pb_prog_vdso_begin(run);
	time = pb_bpf_host_linux()->clock(run, which);
	pb_prog_vdso_end(run);
	__atomic_store_n(&last[which], time, __ATOMIC_RELAXED);
	return time;
}

static uint32_t cpu(struct pb_bpf_run *run)
{
	uint32_t number;

	pb_prog_vdso_begin(run);
	number = pb_bpf_host_linux()->cpu(run);
	pb_prog_vdso_end(run);
	return number;
}

static uint32_t numa_node(struct pb_bpf_run *run)
{
	uint32_t number;

	pb_prog_vdso_begin(run);
	number = pb_bpf_host_linux()->numa_node(run);
	pb_prog_vdso_end(run);
	return number;
}

/* ---- no system calls if a seccomp filter may end the program -------------------------------- */

/* Reads by loads that may fault. If such a load isn't safe, the kernel reads instead. An address
 * that only a kernel can read is frequent in programs that read the task's structure
 * (pb_bpf_host.task), so such a read fails without a fault. */
static int read_memory(struct pb_bpf_run *run, void *to, uint64_t from, uint32_t n)
{
	const struct pb_thread *t = pb_tls;
	struct pb_hit hit = { .slot = (uint64_t)__builtin_frame_address(0),
			      .site = pb_prog_run_of(run)->at->number, .stack = t->stack };
	int err;

	if (from >> 63)
		return -EFAULT;
	err = pb_copy_from_user_nofault(to, from, n, t, &hit);
	if (err != -EPERM)
		return err ? -EFAULT : 0;
	return pb_calls_are_safe() ? pb_bpf_host_linux()->read(run, to, from, n) : -EFAULT;
}

static int write_memory(struct pb_bpf_run *run, uint64_t to, const void *from, uint32_t n)
{
	return pb_calls_are_safe() ? pb_bpf_host_linux()->write(run, to, from, n) : -EFAULT;
}

static uint64_t first_ids;		/* user and group when the agent started, for use under a
					 * seccomp filter */
static char first_comm[PB_BPF_COMM];

static uint64_t uid_gid(struct pb_bpf_run *run)
{
	return pb_calls_are_safe() ? pb_bpf_host_linux()->uid_gid(run) : first_ids;
}

/* Makes only system calls that the agent has made at its start. So the seccomp filters that existed
 * then allow them. If the program has asked for a filter since then, this isn't called
 * (sandbox.h). */
static bool read_comm(char name[PB_BPF_COMM])
{
	long fd = pb_sys(SYS_openat, AT_FDCWD, "/proc/thread-self/comm", O_RDONLY | O_CLOEXEC, 0);
	long n;

	if (pb_sys_failed(fd))
		return false;
	memset(name, 0, PB_BPF_COMM);
	n = pb_sys(SYS_read, fd, name, PB_BPF_COMM);
	pb_sys(SYS_close, fd);
	if (n > 0)
		name[n - 1] = 0;
	return n > 0;
}

static void comm(struct pb_bpf_run *run, char name[PB_BPF_COMM])
{
	if (pb_calls_are_safe())
		pb_bpf_host_linux()->comm(run, name);
	else if (pb_sandboxed || !read_comm(name))
		memcpy(name, first_comm, PB_BPF_COMM);
}

static int send_signal(struct pb_bpf_run *run, uint32_t sig, bool thread)
{
	return pb_calls_are_safe() ? pb_bpf_host_linux()->signal(run, sig, thread) : -EPERM;
}

static int ns_pid_tgid(struct pb_bpf_run *run, uint64_t dev, uint64_t ino,
		       struct bpf_pidns_info *info)
{
	return pb_calls_are_safe() ? pb_bpf_host_linux()->ns_pid_tgid(run, dev, ino, info) :
	       -EINVAL;
}

/* Keeps user, group and name of the task. If the program has a seccomp filter, makes only system
 * calls that the agent's start has made, too, and takes the IDs from the auxiliary vector, which
 * has those of the image's start. */
static void remember_task(void)
{
	first_ids = pb_calls_are_safe() ?
			    pb_bpf_host_linux()->uid_gid(NULL) :
			    pb_auxv(AT_GID, 0) << 32 | (uint32_t)pb_auxv(AT_UID, 0);
	read_comm(first_comm);
}

void pb_prog_left_out(void)
{
	if (counts)
		__atomic_add_fetch(&counts->functions, 1, __ATOMIC_RELAXED);
}

void pb_prog_no_return(void)
{
	if (counts)
		__atomic_add_fetch(&counts->no_return, 1, __ATOMIC_RELAXED);
}

void pb_prog_attached(uint32_t link)
{
	if (counts && link < PB_PROGS_MAX_LINKS)
		__atomic_add_fetch(&counts->links[link], 1, __ATOMIC_RELAXED);
}

struct pb_bpf_prog_stats *pb_prog_stats(uint32_t prog)
{
	_Static_assert(sizeof(counts->progs[0]) == sizeof(struct pb_bpf_prog_stats), "abi/progs.h");
	return counts ? (struct pb_bpf_prog_stats *)&counts->progs[prog] : NULL;
}

void pb_prog_show_code(const struct pb_bpf_prog *prog, uint32_t passes)
{
	struct pb_prog_run r = { .run = { .prog = prog, .thread = pb_process->pid } };
	const uint8_t *code = (const uint8_t *)prog->jited;
	char line[128];
	struct pb_bpf_text t = { .buf = line, .size = sizeof(line) };

	pb_bpf_printf(&t, "flen=%u proglen=%u pass=%u image=%lx from=%s pid=%u", prog->nr,
		      prog->jited_len, passes, (uint64_t)code, prog->name, pb_process->pid);
	trace(&r.run, line, t.len);
	for (uint32_t i = 0; i < prog->jited_len; i += CODE_ROW) {
		t.len = 0;
		pb_bpf_printf(&t, "JIT code: %08x:", i);
		for (uint32_t k = i; k < i + CODE_ROW && k < prog->jited_len; k++)
			pb_bpf_printf(&t, " %02x", code[k]);
		trace(&r.run, line, t.len);
	}
}

const struct pb_bpf_host *pb_prog_host(struct pb_bpf_map *to, struct pb_bpf_map *count_map,
				       struct pb_bpf_map *maps)
{
	struct pb_prog_run none = { .open = NULL };
	uint32_t zero = 0;

	if (count_map && count_map->attr.value_size >= sizeof(*counts))
		counts = count_map->ops->lookup(count_map, &zero, NULL);
	if (counts)
		pb_prog_missed = &counts->runs;
	remember_task();
	/* for programs that read a clock for the first time when it must not be read any more */
	for (int c = 0; c < PB_BPF_NR_CLOCKS && pb_calls_are_safe(); c++)
		now(&none.run, (enum pb_bpf_clock)c);
	output = to;
	all_maps = maps;
	host = *pb_bpf_host_linux();
	host.pid_tgid = pid_tgid;
	host.clock = now;
	host.cpu = cpu;
	host.numa_node = numa_node;
	host.takes = pb_prog_takes;
	host.gives = pb_prog_gives;
	host.no_room = no_room;
	host.read = read_memory;
	host.write = write_memory;
	host.uid_gid = uid_gid;
	host.comm = comm;
	host.signal = send_signal;
	host.ns_pid_tgid = ns_pid_tgid;
	host.trace = trace;
	host.event_output = event_output;
	host.stack = walk_stack;
	host.func_ip = func_ip;
	host.override = override;
	return &host;
}
