/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether a process may trace another process of the same program. The kernel compares the tracer's
 * user ID with all user IDs of the traced thread: the real, the effective and the saved one. If a
 * program has changed only some of its IDs (seteuid()), they differ. Then only the capability
 * CAP_SYS_PTRACE helps. Context: no libc is needed.
 */
#ifndef PB_BASE_PTRACE_RIGHT_H
#define PB_BASE_PTRACE_RIGHT_H
#include <stdbool.h>
#include <stdint.h>

/* Makes CAP_SYS_PTRACE effective for the calling thread, if the capability is in the thread's
 * permitted set. A program that gives up its rights for some time usually keeps its capabilities in
 * this set. A seccomp filter may forbid the system calls that this function makes. So the function
 * does nothing unless pb_ptrace_right_lack() has found that the right is missing. */
void pb_ptrace_right_take(void);
/* Whether the calling thread has CAP_SYS_PTRACE, and the capability has sufficed so far. Then the
 * thread may trace even a process that isn't dumpable. */
bool pb_ptrace_right_held(void);
/* Returns the reason, as text, why a process with the same credentials couldn't trace a thread.
 * task_dir: a descriptor of the thread's task directory. */
const char *pb_ptrace_right_lack(int task_dir, uint32_t tid);
#endif
