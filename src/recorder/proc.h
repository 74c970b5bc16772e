/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What /proc says about one process or thread. Numbers are those of the mounted
 * /proc, which may belong to another pid namespace than the recorder
 * (record_proc_is_ours()). Processes come and go at any time: every answer may be out of
 * date when it arrives. Context: any thread of the recorder.
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

/* Whether a number in /proc means the same to a system call of the recorder. */
bool record_proc_is_ours(void);

/* "/proc/PID", or "/proc/PID/task/TID" where the main thread has exited and another one
 * goes on: files that need memory (maps, exe, root, cwd) exist only there. */
#define RECORD_PROC_PATH 48
void record_proc_path(pid_t pid, char path[RECORD_PROC_PATH]);

enum record_maps {
	RECORD_MAPS_NOT,	/* it doesn't map the ring, has no memory, or is gone */
	RECORD_MAPS,
	RECORD_MAPS_UNKNOWN,	/* not for us to know: it isn't dumpable, or another user's */
};
/* A process, by its number; any of its threads may be the one that is left. One that is
 * older than the recorder isn't traced, whatever may be looked at; nor is the recorder. */
enum record_maps record_proc_maps(const struct record_ring *r, pid_t pid);

struct record_status {
	bool dead;			/* a zombie: it never runs again */
	bool same_user;			/* all its user ids are the recorder's */
	pid_t tgid;
	unsigned nr;			/* its numbers, the innermost namespace last */
	pid_t ids[RECORD_PID_LEVELS];
};
/* The thread's status file; 0, -ENOENT (gone), or another -errno. */
int record_proc_status(const char *path, struct record_status *s);

struct record_stat {
	bool kernel;			/* a kernel thread */
	uint64_t start;			/* in ticks since boot */
	uint64_t memory, env_end;	/* env_end 0: not permitted, or exec isn't done yet */
};
/* dir: "/proc/PID", or a thread's. */
int record_proc_stat(const char *dir, struct record_stat *s);

/* A thread's name, without a newline; left as it is if it can't be read. */
void record_read_comm(pid_t pid, pid_t tid, char comm[RECORD_COMM]);

/* The numbers in a directory: processes of "/proc", threads of "/proc/PID/task". visit
 * returns whether to go on. 0, or -errno: there may be more. */
int record_proc_each(const char *dir, bool (*visit)(void *arg, pid_t nr), void *arg);
#endif
