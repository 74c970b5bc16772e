/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernel says of threads, in /proc. Without libc. Context: not on a hit, and no
 * seccomp filter that may forbid opening files. */
#ifndef PB_BASE_TASK_H
#define PB_BASE_TASK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "/proc/PID/task" */
void pb_task_dir(char *dir, size_t size, uint32_t pid);

/* Of the thread in that directory, as in its stat: 'R', 'S', 'T', ...; 'X' if there is none
 * such; 0: it can't be read. */
char pb_task_state(const char *dir, uint32_t tid);

/* Whether a thread of the process is runnable, or can't run before the kernel has done something
 * for it (state D: it writes to a busy disk). */
bool pb_process_is_held_up(uint32_t pid);
#endif
