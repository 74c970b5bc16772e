/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inside the recorder's server: connections and images. Context: its main
 * thread only. */
#ifndef PB_RECORD_SERVER_H
#define PB_RECORD_SERVER_H
#include "cli/record.h"

struct record_conn {
	int fd;
	pid_t pid;			/* of the peer, as the kernel says */
	uint32_t image;			/* 0 until HELLO */
	bool ready;			/* said READY */
	bool brings;			/* asked for a module that its image didn't have */
	bool dead;			/* to be closed by the sweep */

	/* `patchbay control`: a client asks, the recorder forwards to an agent's
	 * connection. An agent has one question at a time; other clients wait. */
	bool client;
	bool waiting;			/* a client: its request is under way or queued */
	pid_t target;			/* a client: whom it talks to */
	struct record_conn *asker;	/* an agent: who gets the next REPLY */
	void *request;			/* a client: the queued message, whole */
	size_t request_len;
};

struct record_image_module {
	uint32_t module, first_site;
};

struct record_image {
	uint32_t number;
	pid_t pid;
	uint32_t next_site;
	bool ready;
	uint32_t nr_modules;
	struct record_image_module *modules;
	char comm[RECORD_COMM];		/* of its first thread, at its start */
	char path[];			/* of its executable; "": not known */
};

int record_conn_send(struct record_conn *c, uint32_t type, const void *body, size_t len,
		     const void *tail, size_t tail_len, int fd);
int record_conn_error(struct record_conn *c, int error, const char *text);

/* record_listen.c */
struct record_peer {
	int fd;
	pid_t pid;			/* as the kernel says */
};
/* What shows POLLIN when record_listen_next() has an agent. */
int record_listen_fd(const struct record_server *s);
bool record_listen_next(struct record_server *s, struct record_peer *peer);
/* From a socket; nobody of another user. */
bool record_listen_accept(int listen_fd, struct record_peer *peer);

/* record_serve.c; 0, or negative to end the connection. */
int record_serve_request(struct record_server *s, struct record_conn *c, const struct pb_msg *m,
			 const char *body);
int record_serve_reply(struct record_server *s, struct record_conn *agent,
		       const struct pb_msg *m, const char *body);
void record_serve_forget(struct record_server *s, struct record_conn *c);
#endif
