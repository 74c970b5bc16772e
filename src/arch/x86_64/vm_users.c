/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the processes that share the program's memory. Only kcmp(2) tells whether two processes
 * share an address space. A call of kcmp(2) takes about a microsecond. The caller is the stop's
 * helper, which also shares the memory. Before the stop, the helper compares itself with all
 * processes. During the stop, the helper compares itself only with newer processes. Among the
 * newer PIDs may be TIDs of the program's own threads. kcmp(2) accepts TIDs, and these threads
 * share the memory, too. So is_thread() leaves them out.
 */
#include <fcntl.h>
#include <linux/kcmp.h>
#include <unistd.h>
#include "arch/x86_64/vm_users.h"
#include "base/mem.h"
#include "base/sys.h"
#include "base/task.h"

#define MAX_NEW 256	/* if there are more new PIDs, all processes are compared */

/* Another user's process can't be compared (-EPERM), and counts as not sharing. */
static bool shares(uint32_t self, uint32_t pid)
{
	return !pb_sys(SYS_kcmp, self, pid, KCMP_VM, 0, 0);
}

bool pb_vm_users(const struct pb_proc_dirs *dirs, uint32_t pid)
{
	static char buf[8192] __attribute__((aligned(8)));
	uint32_t self = (uint32_t)pb_sys(SYS_getpid);
	bool found = false;
	long n;

	if (pb_sys(SYS_lseek, dirs->root, 0, SEEK_SET))
		return false;
	while (!found && (n = pb_sys(SYS_getdents64, dirs->root, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n && !found; at += *(uint16_t *)(buf + at + 16)) {
			const char *name = buf + at + 19;
			int64_t other = pb_parse_u64(name, strlen(name));

			found = other > 0 && (uint32_t)other != self && (uint32_t)other != pid &&
				shares(self, (uint32_t)other);
		}
	}
	return found;
}

/* The PID that the kernel assigned last: the last word of /proc/loadavg. 0: unknown. */
static uint32_t newest_pid(const struct pb_proc_dirs *dirs)
{
	char text[128];
	long fd = pb_sys(SYS_openat, dirs->root, "loadavg", O_RDONLY | O_CLOEXEC, 0), n, start;
	int64_t pid;

	if (pb_sys_failed(fd))
		return 0;
	n = pb_sys(SYS_read, fd, text, sizeof(text));
	pb_sys(SYS_close, fd);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	for (start = n; start > 0 && text[start - 1] != ' '; start--)
		;
	pid = n > 0 ? pb_parse_u64(text + start, (size_t)(n - start)) : -1;
	return pid > 0 ? (uint32_t)pid : 0;
}

static bool is_thread(int dir, uint32_t tid)
{
	char state = pb_task_state(dir, tid);

	return state && state != 'X';
}

bool pb_vm_users_new(const struct pb_proc_dirs *dirs, uint32_t pid)
{
	uint32_t self = (uint32_t)pb_sys(SYS_getpid), newest = newest_pid(dirs);

	/* too many new PIDs, or PIDs have wrapped around, or /proc/loadavg isn't the kernel's */
	if (newest - self > MAX_NEW)
		return pb_vm_users(dirs, pid);
	for (uint32_t other = self + 1; other <= newest; other++)
		if (shares(self, other) && !is_thread(dirs->task, other))
			return true;
	return false;
}
