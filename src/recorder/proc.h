/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads /proc about one process or thread. PIDs are those of the mounted /proc, which may
 * belong to another pid namespace than the recorder (record_proc_is_ours()). Processes start
 * and end at any time: each answer may be out of date when it arrives. Context: any thread of
 * the recorder.
 */
#ifndef PB_RECORDER_PROC_H
#define PB_RECORDER_PROC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct record_ring;

#define RECORD_COMM 16
#define RECORD_PID_LEVELS 33	/* pid namespaces nest no deeper */

/* Whether the PIDs in /proc are those that the recorder's system calls use. */
bool record_proc_is_ours(void);

/* "/proc/PID", or "/proc/PID/task/TID" if the main thread has exited and thread TID still runs:
 * maps, exe, root and cwd can then be read only there. */
#define RECORD_PROC_PATH 48
void record_proc_path(pid_t pid, char path[RECORD_PROC_PATH]);

enum record_maps {
	RECORD_MAPS_NOT,	/* the process doesn't map the ring, has no memory, or is gone */
	RECORD_MAPS,
	RECORD_MAPS_UNKNOWN,	/* the recorder may not look: the process isn't dumpable, or is
				 * another user's */
};
/* Whether a process maps the ring. If its main thread has exited, another thread is asked. The
 * answer is RECORD_MAPS_NOT for the recorder itself and for processes older than it. */
enum record_maps record_proc_maps(const struct record_ring *r, pid_t pid);

struct record_status {
	bool dead;			/* a zombie: it never runs again */
	bool same_user;			/* all its user ids are the recorder's */
	pid_t tgid;
	unsigned nr;			/* number of ids */
	pid_t ids[RECORD_PID_LEVELS];	/* one in each pid namespace, the innermost last */
};
/* Reads the thread's status file. Returns 0, -ENOENT if the thread is gone, or another -errno. */
int record_proc_status(const char *path, struct record_status *s);

struct record_stat {
	bool kernel;			/* a kernel thread */
	uint64_t start;			/* when it started, in ticks since boot */
	uint64_t memory, env_end;	/* env_end 0: not permitted, or exec isn't done yet */
};
/* Reads a stat file. dir: "/proc/PID" or "/proc/PID/task/TID". */
int record_proc_stat(const char *dir, struct record_stat *s);

/* Reads a thread's name, without the newline; leaves comm unchanged if that fails. */
void record_read_comm(pid_t pid, pid_t tid, char comm[RECORD_COMM]);

/* Calls visit for each number in a directory: processes in "/proc", threads in "/proc/PID/task".
 * visit() returns whether to go on. Returns 0, or -errno if the directory was not read to its
 * end. */
int record_proc_each(const char *dir, bool (*visit)(void *arg, pid_t nr), void *arg);
#endif
