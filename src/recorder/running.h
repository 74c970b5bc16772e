/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the facts that the recorder needs about a process that runs already, mostly in /proc, and
 * opens files for the agent of a process. Context: any thread. */
#ifndef PB_RECORDER_RUNNING_H
#define PB_RECORDER_RUNNING_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct record_target;

/* Fills t for a process that runs already. Returns the arguments of its command line,
 * NULL-terminated. The caller frees the array and its first element. If there is no such process,
 * or if the recorder may not look at it, prints an error line and returns NULL. */
char **record_running_target(struct record_target *t, pid_t pid);
void record_running_close(struct record_target *t);
enum record_state {
	RECORD_RUNS,
	RECORD_RUNS_OTHER,	/* the process has executed another program */
	RECORD_ENDED,
};
/* Waits at most ms milliseconds for the process's end. */
void record_running_wait(const struct record_target *t, int ms);
/* True if the process is ending, but hasn't ended yet: each of its threads is ending, or is about
 * to be killed. On a busy machine, the threads may wait long for a processor. */
bool record_running_dies(const struct record_target *t);
enum record_state record_running_state(const struct record_target *t);
/* Opens a regular file for reading. Returns a descriptor or -errno. Has no effect on other files:
 * they aren't opened. */
int record_open_regular(const char *path);
/* A recorder that runs as root opens files whose names it gets from agents of other users. It must
 * not read a file for an agent that the agent may not read itself. So it opens such files with the
 * agent's rights. */
struct record_rights {
	bool taken;
	int nr, dumpable;
	gid_t *groups;		/* this thread's own groups */
};
/* If this process is root, and the peer of the socket isn't, gives the calling thread the peer's
 * rights on files. Returns 0 or -errno. In both cases, record_rights_restore() must follow. */
int record_rights_take(struct record_rights *r, int fd);
void record_rights_restore(struct record_rights *r);
/* Opens a file with the path as the process sees it: in its root directory or, if the path is
 * relative, in its working directory. If the recorder may not use the process's root directory, it
 * opens the path in its own root directory. Returns a descriptor or -errno. */
int record_running_open(pid_t pid, const char *path);
/* Opens the file of a library that the process had loaded before record_running_target(), even if
 * the file was deleted or replaced. bias: the library's load address minus its link-time address;
 * NULL: unknown. If the recorder may not open a deleted file, opens the file that has the path now.
 * Returns a descriptor or -errno. */
int record_running_open_library(const struct record_target *t, const char *path,
				const uint64_t *bias);
/* Opens a file for an agent: with the path as the process sees it, and with the rights of the peer
 * of `conn`. t: the process that was attached; NULL: another process. If bias is NULL, the file may
 * also be the one with this path in the recorder's root directory. */
int record_running_open_for(const struct record_target *t, pid_t pid, int conn, const char *path,
			    const uint64_t *bias);
/* Opens the file that the process has mapped at this address, as the mapping's start. Only root may
 * do so. Returns a descriptor or -errno. */
int record_running_open_mapped(pid_t pid, uint64_t address);
/* Returns true if the process has loaded another file with this bias than the open file *fd. But if
 * the recorder may open the file that is mapped, *fd becomes that file, and the result is false. */
bool record_running_replaced(const struct record_target *t, uint64_t bias, int *fd);
/* Opens the process's executable, even if the file was deleted. */
int record_running_open_exe(pid_t pid);
/* Stores the path of the process's executable; "" if it can't be read. */
void record_running_exe_path(pid_t pid, char *path, size_t size);
#endif
