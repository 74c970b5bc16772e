/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Agents are accepted by a thread of its own. Context: the main thread, but for what says
 * otherwise. */
#ifndef PB_RECORDER_LISTEN_H
#define PB_RECORDER_LISTEN_H
#include <stdbool.h>
#include <sys/types.h>

struct record_server;

/* Agents are accepted, and get the ring, whatever else the recorder does: by a thread
 * of its own, until the stop. From then on connections are refused. 0 or -errno. */
int record_listen_start(struct record_server *s);
void record_listen_stop(struct record_server *s);

struct record_peer {
	int fd;
	pid_t pid;			/* as the kernel says */
};
/* What shows POLLIN when record_listen_next() has an agent. */
int record_listen_fd(const struct record_server *s);
bool record_listen_next(struct record_server *s, struct record_peer *peer);
/* From a socket; processes of other users are refused. */
bool record_listen_accept(int listen_fd, struct record_peer *peer);
#endif
