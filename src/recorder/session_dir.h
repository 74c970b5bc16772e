/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes and removes the session's directory, which has the socket for agents. Also makes the
 * environment variables by which agents find the socket. Context: the main thread. */
#ifndef PB_RECORDER_SESSION_DIR_H
#define PB_RECORDER_SESSION_DIR_H
#include <limits.h>
#include <stdbool.h>

struct record_session {
	char dir[96];
	char sock[108];
	char control[108];	/* "" without --serve */
	int listen_fd, control_fd;
	int lock_fd;		/* descriptor of dir, which stays locked while the session lives;
				 * negative: no lock */
	char agent[PATH_MAX];	/* the agent's path for LD_PRELOAD */
};
/* Makes the session's directory and its sockets. Returns 0, or 1 after a message. */
int record_session_open(struct record_session *s, bool serve);
/* Sets s->agent. Returns 0, or 1 after a message. */
int record_session_find_agent(struct record_session *s);
void record_session_close(struct record_session *s);
/* Finds or makes the directory in which session directories are made. Returns 0 or -errno. */
#define RECORD_BASE 72
int record_session_base(char base[RECORD_BASE]);
/* Calls visit() with the path of each session's `control` socket, until visit() returns true. Only
 * sessions of this user are visited. Some sockets may be left from recorders that were killed. */
void record_session_each(bool (*visit)(void *arg, const char *control), void *arg);
/* Returns a copy of environ for the program exe, with the agent's variables. The caller frees it
 * with free(). */
char **record_session_environ(const struct record_session *s, const char *exe);
#endif
