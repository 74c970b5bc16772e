/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The states of threads, from /proc, without libc. Context: not on a hit, and not under a
 * seccomp filter that may forbid opening files. */
#ifndef PB_BASE_TASK_H
#define PB_BASE_TASK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stores "/proc/PID/task". */
void pb_task_dir(char *dir, size_t size, uint32_t pid);

/* The state of a thread in that directory, as in its stat file: 'R', 'S', 'T', ... 'X': there is
 * no such thread. 0: the file can't be read. */
char pb_task_state(const char *dir, uint32_t tid);

/* Is a thread of the process runnable, or in state D, for example because it writes to a busy
 * disk? */
bool pb_process_is_held_up(uint32_t pid);
#endif
