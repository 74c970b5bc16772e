/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads what /proc shows of one process or thread. PIDs are the PIDs of the mounted /proc. The
 * mounted /proc may belong to another pid namespace than the recorder's (record_proc_is_ours()).
 * Processes start and end at any time, so each answer may already be out of date. Context: any
 * thread of the recorder, or the injector's thread.
 */
#ifndef PB_RECORDER_PROC_H
#define PB_RECORDER_PROC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct record_ring;

#define RECORD_COMM 16
#define RECORD_PID_LEVELS 33	/* maximal depth of nested pid namespaces */

/* True if the PIDs in /proc are the same as those that the recorder's system calls use. */
bool record_proc_is_ours(void);

/* Writes the process's directory to path, usually "/proc/PID". If the main thread has exited, but
 * another thread TID still runs, writes "/proc/PID/task/TID": then only the directories of such
 * threads show maps, exe, root and cwd. */
#define RECORD_PROC_PATH 48
void record_proc_path(pid_t pid, char path[RECORD_PROC_PATH]);

enum record_maps {
	RECORD_MAPS_NOT,	/* the process doesn't map the ring, has no memory, or is gone */
	RECORD_MAPS,
	RECORD_MAPS_UNKNOWN,	/* the recorder can't find out: the process isn't dumpable or
				 * belongs to another user, or a read failed */
};
/* Finds out whether a process maps the ring. If its main thread has exited, another thread's
 * directory is read. The answer is RECORD_MAPS_NOT for the recorder itself, and for all processes
 * that are older than the recorder, except the process that was attached. If another process made
 * the ring (`foreign`), ages don't count, because traced processes may then be older. */
enum record_maps record_proc_maps(const struct record_ring *r, pid_t pid);

struct record_status {
	bool dead;			/* the thread is a zombie: it never runs again */
	bool same_user;			/* all user ids of the thread are equal to the recorder's
					 * user ids */
	pid_t tgid;
	unsigned nr;			/* number of elements in ids */
	pid_t ids[RECORD_PID_LEVELS];	/* the thread's number in each pid namespace; the innermost
					 * namespace is the last */
};
/* Reads the thread's status file. Returns 0, -ENOENT if the thread is gone, or another -errno. */
int record_proc_status(const char *path, struct record_status *s);
/* The same for a thread of a process. */
int record_task_status(pid_t pid, pid_t tid, struct record_status *s);

struct record_stat {
	bool kernel;			/* the thread is a kernel thread */
	bool exiting;			/* the thread is ending: it never returns to its program */
	uint64_t start;			/* when the thread started, in ticks since boot */
	uint64_t memory, env_end;	/* memory: size of the virtual memory in bytes. env_end: the
					 * address where the environment ends; 0: the recorder may
					 * not see this address, or exec isn't done yet */
};
/* Reads the stat file in the directory "/proc/PID" or "/proc/PID/task/TID". Returns 0 or -errno. */
int record_proc_stat(const char *dir, struct record_stat *s);

/* Reads as much of a file as fits into the buffer, with a NUL after the text. Returns the text's
 * length or -errno. */
#define RECORD_STATUS_MAX 8192	/* room for a status file */
ssize_t record_proc_read(const char *path, char *buf, size_t size);
/* Finds a line "KEY:\tVALUE" in the text of a status file. Returns its value, or NULL. */
const char *record_proc_value(const char *status, const char *key);
/* True if the text of a status file, or its line "State", shows that the thread never runs
 * again. */
bool record_proc_is_dead(const char *status);

/* A line of a maps file. */
struct record_map {
	uint64_t start, end, offset;
	uint64_t ino;
	unsigned major, minor;		/* of the device */
	bool read, write, exec;
	char *path;			/* "" if the mapping has no name */
};
/* Parses a line of a maps file. The path is a part of the line, whose newline is cut off. */
bool record_map_parse(char *line, struct record_map *m);

/* Reads a thread's name, without the newline. Leaves comm unchanged if the read fails. */
void record_read_comm(pid_t pid, pid_t tid, char comm[RECORD_COMM]);

/* True if two processes share their memory, as a vfork child shares its parent's. False also if the
 * kernel doesn't say. */
bool record_proc_shares(pid_t one, pid_t other);
/* True if the process is one that an agent made to stop its program's threads (PB_STOP_HELPER). */
bool record_proc_is_helper(pid_t pid);

/* Calls visit() for each entry of a directory whose name is a number: in "/proc" for each process,
 * in "/proc/PID/task" for each thread. If visit() returns false, the calls end. Returns 0, or
 * -errno if the directory could not be read to its end. */
int record_proc_each(const char *dir, bool (*visit)(void *arg, pid_t nr), void *arg);
#endif
