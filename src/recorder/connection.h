/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Connections of agents and clients, and the program images that agents run in. In a process, each
 * exec begins a new image. Context: the main thread. */
#ifndef PB_RECORDER_CONNECTION_H
#define PB_RECORDER_CONNECTION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "recorder/proc.h"

struct record_conn {
	int fd;
	pid_t pid;			/* the peer's PID, as the kernel reports it */
	uint32_t image;			/* number of the image; 0 until HELLO has come */
	bool first;			/* the connection on which the image's agent starts. Later
					 * connections of the image are those of threads that load
					 * libraries, in this process or in forked children */
	bool ready;			/* the image's agent has started: it has sent READY on its
					 * first connection */
	bool brings;			/* since its last READY, the agent has sent a MODULE that is
					 * traced and new to its image */
	bool left;			/* the agent was asked to detach */
	bool dead;			/* conns_sweep() will close it */
	int error;			/* -errno of the last message that couldn't be sent or was
					 * refused; 0: none. If `dead` is also set, the recorder has
					 * given the connection up for this reason */

	/* For `patchbay control`: a client sends a request, and the recorder forwards the request
	 * to an agent's connection. An agent gets one request at a time. Until it has answered,
	 * other clients wait. */
	bool client;
	uint64_t serial;		/* the connection's number: an older connection has a lower
					 * number */
	bool waiting;			/* a client: its request is queued, or was forwarded and has
					 * no answer yet */
	pid_t target;			/* a client: the process that it controls */
	bool leaves;			/* a client: it has asked for a detach, and waits until all
					 * agents are detached */
	struct record_conn *asker;	/* an agent: the client to which the agent's next REPLY is
					 * forwarded. If that client has left, this field points to
					 * the agent itself */
	void *request;			/* a client: the whole queued message */
	size_t request_len;
};

struct record_image_module {
	uint32_t module, first_site;
};

struct record_image {
	uint32_t number;
	pid_t pid;
	uint32_t next_site;		/* the first site number of the image's next module */
	bool ready;			/* the image's agent has sent READY */
	uint32_t nr_modules;
	struct record_image_module *modules;
	char comm[RECORD_COMM];		/* name of the image's first thread when the image
					 * started */
	char path[];			/* path of the image's executable; "" if it is unknown */
};

/* Sends a message: body, then tail, and the descriptor fd unless it is -1. Returns 0. After an
 * error, sets c->error and c->dead, and returns -errno. If the peer has left, sets only c->error,
 * and returns 0, because messages that the peer has sent before must still be read. The read after
 * the last of them ends the connection. */
int record_conn_send(struct record_conn *c, uint32_t type, const void *body, size_t len,
		     const void *tail, size_t tail_len, int fd);
/* The same, but with up to two descriptors; nr is their number. */
int record_conn_send_files(struct record_conn *c, uint32_t type, const void *body, size_t len,
			   const int *fds, unsigned nr);
int record_conn_error(struct record_conn *c, int error, const char *text);
#endif
