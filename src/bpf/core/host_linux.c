/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A host that gets everything from the kernel, for a process that itself runs programs. */
#include <asm/errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include "base/mem.h"
#include "base/sys.h"
#include "bpf/core/host.h"
#include "bpf/core/vdso.h"

#define PAGE		4096
#define TASK_SIZE	16384	/* no struct task_struct is larger */

static long (*vdso_clock)(clockid_t, struct timespec *);
static long (*vdso_getcpu)(unsigned *, unsigned *, void *);

static uint64_t host_clock(struct pb_bpf_run *run, enum pb_bpf_clock clock)
{
	static const clockid_t ids[] = {
		[PB_BPF_MONOTONIC] = CLOCK_MONOTONIC, [PB_BPF_BOOTTIME] = CLOCK_BOOTTIME,
		[PB_BPF_COARSE] = CLOCK_MONOTONIC_COARSE, [PB_BPF_TAI] = CLOCK_TAI,
	};
	struct timespec ts = { 0 };

	if (vdso_clock)
		vdso_clock(ids[clock], &ts);
	else
		pb_sys(SYS_clock_gettime, ids[clock], &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int copy(long call, void *here, uint64_t there, uint32_t n)
{
	struct iovec local = { here, n }, remote = { (void *)there, n };

	return pb_sys(call, pb_sys(SYS_getpid), &local, 1, &remote, 1, 0) == (long)n ? 0 : -EFAULT;
}

static int host_read(struct pb_bpf_run *run, void *to, uint64_t from, uint32_t n)
{
	return copy(SYS_process_vm_readv, to, from, n);
}

static int host_write(struct pb_bpf_run *run, uint64_t to, const void *from, uint32_t n)
{
	return copy(SYS_process_vm_writev, (void *)from, to, n);
}

static int64_t host_read_str(struct pb_bpf_run *run, char *to, uint64_t from, uint32_t n)
{
	uint32_t done = 0;

	while (done < n) {
		uint32_t here = PAGE - (uint32_t)((from + done) % PAGE);

		if (here > n - done)
			here = n - done;
		if (run->host->read(run, to + done, from + done, here))
			return -EFAULT;
		for (; here; here--, done++)
			if (!to[done]) {
				/* zero the bytes that were read after the string */
				memset(to + done, 0, here);
				return done + 1;
			}
	}
	if (n)
		to[n - 1] = 0;
	return n;
}

static uint64_t host_pid_tgid(struct pb_bpf_run *run)
{
	return (uint64_t)pb_sys(SYS_getpid) << 32 | (uint32_t)pb_sys(SYS_gettid);
}

static uint64_t host_uid_gid(struct pb_bpf_run *run)
{
	return (uint64_t)pb_sys(SYS_getgid) << 32 | (uint32_t)pb_sys(SYS_getuid);
}

static void host_comm(struct pb_bpf_run *run, char comm[PB_BPF_COMM])
{
	pb_sys(SYS_prctl, PR_GET_NAME, comm, 0, 0, 0);
}

static uint32_t where(bool node)
{
	unsigned at[2] = { 0 };

	if (vdso_getcpu)
		vdso_getcpu(&at[0], &at[1], NULL);
	else
		pb_sys(SYS_getcpu, &at[0], &at[1], 0);
	return at[node];
}

static uint32_t host_cpu(struct pb_bpf_run *run)
{
	return where(false);
}

static uint32_t host_node(struct pb_bpf_run *run)
{
	return where(true);
}

/* In user space, no address has the topmost bit. The multiplication keeps the fields of different
 * threads' structures apart, and most of the id in the lower half. */
static uint64_t host_task(struct pb_bpf_run *run)
{
	uint64_t thread = run->thread ? run->thread : (uint32_t)pb_sys(SYS_gettid);

	return 1ull << 63 | thread * TASK_SIZE;
}

static int host_signal(struct pb_bpf_run *run, uint32_t sig, bool thread)
{
	long pid = pb_sys(SYS_getpid);

	return (int)(thread ? pb_sys(SYS_tgkill, pid, pb_sys(SYS_gettid), sig) :
		     pb_sys(SYS_kill, pid, sig));
}

static int host_ns_pid_tgid(struct pb_bpf_run *run, uint64_t dev, uint64_t ino,
			    struct bpf_pidns_info *info)
{
	uint64_t ids = host_pid_tgid(run);
	struct stat st;

	if (pb_sys(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &st, 0) || st.st_dev != dev ||
	    st.st_ino != ino)
		return -EINVAL;
	info->pid = (uint32_t)ids;
	info->tgid = (uint32_t)(ids >> 32);
	return 0;
}

const struct pb_bpf_host *pb_bpf_host_linux(void)
{
	static const struct pb_bpf_host host = {
		.clock = host_clock, .read = host_read, .read_str = host_read_str,
		.write = host_write, .pid_tgid = host_pid_tgid, .uid_gid = host_uid_gid,
		.comm = host_comm, .cpu = host_cpu, .numa_node = host_node, .task = host_task,
		.signal = host_signal, .ns_pid_tgid = host_ns_pid_tgid,
	};

	if (!vdso_clock) {
		vdso_getcpu =
			(long (*)(unsigned *, unsigned *, void *))pb_bpf_vdso("__vdso_getcpu");
		vdso_clock =
			(long (*)(clockid_t, struct timespec *))pb_bpf_vdso("__vdso_clock_gettime");
	}
	return &host;
}
