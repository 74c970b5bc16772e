/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A thread that accepts agents. Context: the main thread, unless a function says otherwise. */
#ifndef PB_RECORDER_LISTEN_H
#define PB_RECORDER_LISTEN_H
#include <stdbool.h>
#include <sys/types.h>

struct record_server;

/* Starts a thread that accepts agents and sends them the ring, even while the main thread is busy.
 * After record_listen_stop(), connections are refused. Returns 0 or -errno. */
int record_listen_start(struct record_server *s);
void record_listen_stop(struct record_server *s);

/* Raises the recorder's limit of descriptors, because each connection takes one. Called after the
 * program's start, so that the program keeps the lower limit. */
void record_listen_raise_limit(void);

struct record_peer {
	int fd;
	pid_t pid;			/* the peer's PID, as the kernel reports it */
};
/* Returns a descriptor. poll() reports POLLIN on it when record_listen_next() has an agent. */
int record_listen_fd(const struct record_server *s);
/* Takes the next agent that has connected. Returns false if there is none. */
bool record_listen_next(struct record_server *s, struct record_peer *peer);
/* Accepts a peer from a socket. Refuses processes of other users, unless the recorder is root.
 * Context: any thread. */
bool record_listen_accept(int listen_fd, struct record_peer *peer);
/* Accepts a client from the control socket. Returns false if there is none. If no descriptor is
 * free, pauses before it returns false. */
bool record_listen_client(const struct record_server *s, struct record_peer *peer);
#endif
