/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether a process may trace another process of the same program. The kernel compares the tracer's
 * user ID with all user IDs of the traced thread: the real, the effective and the saved one. If a
 * program has changed only some of its IDs (seteuid()), they differ. Then only the capability
 * CAP_SYS_PTRACE helps. Context: no libc is needed.
 */
#ifndef PB_BASE_PTRACE_RIGHT_H
#define PB_BASE_PTRACE_RIGHT_H
#include <stdint.h>

/* Makes the calling thread's capability CAP_SYS_PTRACE effective, if the thread is permitted to do
 * so. A program that gives up its rights for some time usually keeps them permitted. Does nothing
 * unless pb_ptrace_right_lack() has found that the right is missing, because a seccomp filter may
 * forbid the system calls. */
void pb_ptrace_right_take(void);
/* Returns why a thread couldn't be traced by a process with the same credentials. */
const char *pb_ptrace_right_lack(const char *task_dir, uint32_t tid);
#endif
