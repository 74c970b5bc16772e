/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Serves control files to `patchbay control`. A function with a result returns a negative value if
 * the connection must end, and 0 otherwise. Context: the main thread. */
#ifndef PB_RECORDER_SERVE_CONTROL_H
#define PB_RECORDER_SERVE_CONTROL_H

struct pb_msg;
struct record_conn;
struct record_outcome;
struct record_server;

int record_serve_request(struct record_server *s, struct record_conn *c, const struct pb_msg *m,
			 const char *body);
int record_serve_reply(struct record_server *s, struct record_conn *agent,
		       const struct pb_msg *m, const char *body);
/* Forwards the requests of clients that wait for an agent, if the agent is free. If the agent was
 * asked to detach, refuses them. Called after an agent has become free, or was asked to detach. */
void record_serve_waiting(struct record_server *s);
/* Answers the clients that have asked for a detach. To be called at the recording's end. The answer
 * is about the main process. But if the main process is a program that has ended, the answer is
 * about the process that the client has named. */
void record_serve_left(struct record_server *s, const struct record_outcome *out);
void record_serve_forget(struct record_server *s, struct record_conn *c);
#endif
