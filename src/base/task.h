/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The states of threads, from /proc, without libc. Context: not on a hit, and not under a
 * seccomp filter that may forbid opening files. */
#ifndef PB_BASE_TASK_H
#define PB_BASE_TASK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Descriptors of /proc and of /proc/PID/task of the process that has opened them; -1: not open. A
 * process can use them after it has changed its root directory. */
struct pb_proc_dirs {
	int root, task;
};
/* Returns 0 or -errno. */
int pb_proc_dirs_open(struct pb_proc_dirs *d);
void pb_proc_dirs_close(struct pb_proc_dirs *d);
/* Returns a descriptor of /proc/PID/task, or -errno. */
int pb_task_dir(uint32_t pid);

/* Returns the state of a thread in the task directory `dir`, as the thread's stat file has it: 'R',
 * 'S', 'T', ... Returns 'X' if there is no such thread, or 0 if the file can't be read. */
char pb_task_state(int dir, uint32_t tid);

/* Whether a thread of the process is runnable or in state D. A thread is in state D, for example,
 * while it writes to a busy disk. */
bool pb_process_is_held_up(uint32_t pid);

/* The text of a thread's status file. Some lines may be very long, for example "Groups:" of a user
 * with many groups. If a line has more than PB_TASK_LINE characters, the rest is replaced by a hash
 * of the rest. So two lines that differ only in the rest still differ here, unless the two hashes
 * are equal. */
#define PB_TASK_LINE	200
struct pb_task_status {
	char text[8192];
	size_t len;
};

/* Reads the status file of a thread in the task directory `dir`. False: the file can't be read. */
bool pb_task_read_status_at(struct pb_task_status *s, int dir, uint32_t tid);
/* The same for a thread of this process. */
bool pb_task_read_status(struct pb_task_status *s, uint32_t tid);
/* The same for the calling thread. Makes only system calls that dlopen makes, too: open, read and
 * close. */
bool pb_task_read_own_status(struct pb_task_status *s);
/* Returns the line that begins with this key, and its length. NULL: there is none. */
const char *pb_task_status_line(const struct pb_task_status *s, const char *key, size_t *len);
/* Returns the number in the line "KEY\tNUMBER". 0: there is no such line. */
uint32_t pb_task_status_number(const struct pb_task_status *s, const char *key);
#endif
