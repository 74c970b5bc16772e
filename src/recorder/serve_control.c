/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Serves the `control` socket. The client, `patchbay control`, sends a request. The recorder
 * forwards the request over the agent's connection, which PB_WELCOME_SERVE keeps open. Then the
 * recorder sends the agent's answer back.
 *
 *   client                         recorder                       agent
 *   HELLO (pid of a process) ----> finds the agent's connection
 *   <------------- READY, or ERROR
 *   WRITE / READ ----------------> answers if the recorder owns the file;
 *                                  otherwise queues the request while the agent is busy
 *                                  WRITE / READ -----------------> carries it out
 *                                  <---------------- REPLY, or ERROR + text
 *   <----------------------------- passes the answer on
 *   STATUS ----------------------> answers
 *   <---------------------- STATUS
 *   RING, DATA ------------------> answers
 *   <------------------ RING, DATA  with a read-only descriptor
 *   DETACH ----------------------> detaches all agents and ends the recording
 *   <----------------------- REPLY + text, when all data is written
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/messages.h"
#include "abi/ring.h"
#include "base/clean_text.h"
#include "control/control.h"
#include "reader/datadir_writer.h"
#include "reader/drain.h"
#include "recorder/connection.h"
#include "recorder/flight.h"
#include "recorder/proc.h"
#include "recorder/ring_memory.h"
#include "recorder/serve_control.h"
#include "recorder/recording.h"
#include "recorder/settings.h"

/* Returns the agent of the process. If pid is 0, returns the agent of the oldest image. Returns
 * NULL if no such agent is connected and ready. */
static struct record_conn *find_agent(struct record_server *s, pid_t pid)
{
	struct record_conn *best = NULL;

	for (unsigned i = 0; i < s->nr_conns; i++) {
		struct record_conn *c = s->conns[i];

		if (c->client || c->dead || !c->ready || (pid && c->pid != pid))
			continue;
		if (!best || c->image < best->image)
			best = c;
	}
	return best;
}

/* Sends the client's request to the agent of the process that the client has named in its HELLO. If
 * the agent is busy, the request stays queued. */
static int forward(struct record_server *s, struct record_conn *client)
{
	struct record_conn *agent = find_agent(s, client->target);
	const struct pb_msg *m = client->request;

	if (!agent || agent->left) {
		client->waiting = false;
		record_conn_error(client, -ESRCH, agent ? "the process is being detached" :
				  "the process is gone, or is detached");
		goto done;
	}
	if (agent->asker)
		return 0;
	int ret = record_conn_send(agent, m->type, m + 1, m->len, NULL, 0, -1);
	if (ret) {
		client->waiting = false;
		record_conn_error(client, ret, "the process doesn't answer");
	} else {
		agent->asker = client;
	}
done:
	free(client->request);
	client->request = NULL;
	return 0;
}

static int on_client_hello(struct record_server *s, struct record_conn *c, const struct pb_msg *m,
			   const char *body)
{
	struct pb_msg_hello h;
	struct record_conn *agent;

	if (m->len < sizeof(h))
		return -EPROTO;
	memcpy(&h, body, sizeof(h));
	if (h.protocol != PB_PROTOCOL)
		return record_conn_error(c, -EPROTO,
					 "the program is recorded by another version of Patchbay");
	agent = find_agent(s, (pid_t)h.pid);
	if (!agent)
		return record_conn_error(c, -ESRCH,
					 h.pid ? "this session doesn't trace that process" :
					 "no traced process is ready");
	c->target = agent->pid;
	struct pb_msg_ready r = { .image = agent->image, .pid = (uint32_t)agent->pid };
	return record_conn_send(c, PB_MSG_READY, &r, sizeof(r), NULL, 0, -1);
}

static int reply(struct record_conn *c, int32_t result, const char *text, size_t len)
{
	struct pb_msg_file f = { .result = result };

	return record_conn_send(c, PB_MSG_REPLY, &f, sizeof(f), text, len, -1);
}

/* Sends the part of a file's text that a READ requests. */
static int reply_text(struct record_conn *c, const struct pb_msg_file *ask, const char *text)
{
	size_t len = strlen(text);

	if (ask->offset >= len)
		return reply(c, 0, NULL, 0);
	len -= ask->offset;
	len = len < ask->size ? len : ask->size;
	return reply(c, (int32_t)len, text + ask->offset, len);
}

/* buffer_size_kb */
static int answer_size(struct record_server *s, struct record_conn *c, uint32_t type,
		       const struct pb_msg_file *ask)
{
	static const char fixed[] = "can't change while the program runs; choose it with record -b";
	uint64_t kb = (uint64_t)s->ring->geometry.nr_buffer * PB_CHUNK_SIZE >> 10;
	char text[32];

	if (type == PB_MSG_WRITE)
		return reply(c, -EBUSY, fixed, sizeof(fixed));
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)kb);
	return reply_text(c, ask, text);
}

static const char no_flight[] = "this recording takes no snapshots: that needs --overwrite (or "
				"flight, or attach --data) and a data directory; see patchbay "
				"snapshot";

/* snapshot. The value of a WRITE isn't NUL-terminated. */
static int answer_snapshot(struct record_server *s, struct record_conn *c, uint32_t type,
			   const struct pb_msg_file *ask, const char *value, size_t len)
{
	static const char full[] = "no more snapshots are taken (flight --snapshots); patchbay "
				   "snapshot still takes one";
	char text[PATH_MAX + 1] = "";

	if (!s->flight && type == PB_MSG_WRITE)
		return reply(c, -EOPNOTSUPP, no_flight, sizeof(no_flight));
	if (type == PB_MSG_WRITE) {
		if (memchr(value, '1', len) &&
		    !record_flight_ask(s->flight, "the control file asked for it"))
			return reply(c, -ENOSPC, full, sizeof(full));
		return reply(c, (int32_t)ask->size, NULL, 0);
	}
	if (s->flight)
		record_flight_last(s->flight, text, PATH_MAX);
	return reply_text(c, ask, *text ? strcat(text, "\n") : "# no snapshot was taken\n");
}

/* The request is complete (is_whole()). If the recorder owns the file, or must refuse the request,
 * this function answers the request, sets *ret and returns true. Otherwise it returns false. */
static bool answered(struct record_server *s, struct record_conn *c, const struct pb_msg *m,
		     const char *body, int *ret)
{
	const char *path = body + sizeof(struct pb_msg_file), *value = path + strlen(path) + 1;
	enum pb_control_file file = pb_control_find(path);
	const struct pb_control_info *info = pb_control_info(file);
	struct pb_msg_file ask;

	memcpy(&ask, body, sizeof(ask));
	/* refuse snapshot_on if this recording takes no snapshots: the agent would count requests
	 * that are never served */
	if (file == PB_CF_SNAPSHOT_ON && m->type == PB_MSG_WRITE && ask.size && !s->flight) {
		*ret = reply(c, -EOPNOTSUPP, no_flight, sizeof(no_flight));
		return true;
	}
	if (!info || info->owner != PB_OWNER_OBSERVER)
		return false;
	*ret = file == PB_CF_SNAPSHOT ?
	       answer_snapshot(s, c, m->type, &ask, value, (size_t)(body + m->len - value)) :
	       answer_size(s, c, m->type, &ask);
	return true;
}

static int send_status(struct record_server *s, struct record_conn *c)
{
	struct pb_msg_status st = {
		.pid = (uint32_t)c->target, .since = s->since,
		.lost = record_ring_lost(s->ring) + s->drain->discarded_calls,
		.bytes = s->drain->bytes + record_ring_bytes(s->ring),
	};

	return record_conn_send(c, PB_MSG_STATUS, &st, sizeof(st), NULL, 0, -1);
}

/* Sends a message with a read-only descriptor of an open file or directory. */
static int send_file(struct record_conn *c, uint32_t type, const void *body, size_t len, int fd)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int copy = open(path, O_RDONLY | O_CLOEXEC);
	if (copy < 0)
		return record_conn_error(c, -errno, "the recorder has no free descriptor, or no "
					 "/proc");
	int ret = record_conn_send(c, type, body, len, NULL, 0, copy);
	close(copy);
	return ret;
}

/* Sends the ring or the data directory. With both, a client can read the records while the
 * recording runs. */
static int send_memory(struct record_server *s, struct record_conn *c, uint32_t type)
{
	struct pb_msg_ring ring = record_ring_message(s->ring);

	if (type == PB_MSG_DATA)
		return send_file(c, type, NULL, 0, s->datadir->dir_fd);
	return send_file(c, type, &ring, sizeof(ring), s->ring->fd);
}

static bool is_running(pid_t pid)
{
	char dir[RECORD_PROC_PATH];
	struct record_stat st;

	snprintf(dir, sizeof(dir), "/proc/%d", (int)pid);
	return !record_proc_stat(dir, &st) && st.memory;
}

static void answer_detach(struct record_server *s, struct record_conn *c,
			  const struct record_outcome *out)
{
	char text[PATH_MAX + 100], dir[PATH_MAX], name[RECORD_COMM] = "?";
	const char *left = out->left ? out->left : "has ended";
	pid_t pid = out->exited ? c->target : out->pid;

	if (pid == out->pid) {
		memcpy(name, out->name, sizeof(name));
	} else if (is_running(pid)) {
		record_read_comm(pid, pid, name);
		pb_text_clean(name, '?', 0);
		left = "runs on";
	}
	int n = snprintf(text, sizeof(text), "%s (%d) %s", name, (int)pid,
			 strcmp(left, "runs on") ? left : "is detached, and runs on");
	if (!s->options->temporary && s->options->recorded && realpath(s->options->dir, dir))
		snprintf(text + n, sizeof(text) - (size_t)n, "; its recording is in %s", dir);
	reply(c, 0, text, strlen(text) + 1);
}

void record_serve_left(struct record_server *s, const struct record_outcome *out)
{
	for (unsigned i = 0; i < s->nr_conns; i++)
		if (s->conns[i]->leaves && !s->conns[i]->dead)
			answer_detach(s, s->conns[i], out);
}

/* True if a READ or WRITE has all its parts. If the recorder forwarded an incomplete request, the
 * agent would end its connection. A client must not be able to end a recording in this way. */
static bool is_whole(const struct pb_msg *m, const char *body)
{
	size_t left = m->len;
	struct pb_msg_file f;
	const char *end;

	if (left < sizeof(f))
		return false;
	memcpy(&f, body, sizeof(f));
	left -= sizeof(f);
	end = memchr(body + sizeof(f), 0, left);
	if (!end)
		return false;
	left -= (size_t)(end + 1 - (body + sizeof(f)));
	return m->type == PB_MSG_READ || f.size <= left;
}

int record_serve_request(struct record_server *s, struct record_conn *c, const struct pb_msg *m,
			 const char *body)
{
	int ret;

	if (m->type == PB_MSG_HELLO)
		return on_client_hello(s, c, m, body);
	if (m->type == PB_MSG_STATUS && c->target)
		return send_status(s, c);
	if ((m->type == PB_MSG_RING || m->type == PB_MSG_DATA) && c->target)
		return send_memory(s, c, m->type);
	if (m->type == PB_MSG_DETACH && c->target) {
		s->leave = c->leaves = true;
		return 0;
	}
	if ((m->type != PB_MSG_WRITE && m->type != PB_MSG_READ) || !is_whole(m, body))
		return -EPROTO;
	if (answered(s, c, m, body, &ret))
		return ret;
	if (!c->target || c->request)
		return -EPROTO;
	c->request = malloc(sizeof(*m) + m->len);
	if (!c->request)
		return -ENOMEM;
	memcpy(c->request, m, sizeof(*m));
	memcpy((char *)c->request + sizeof(*m), body, m->len);
	c->waiting = true;
	return forward(s, c);
}

void record_serve_waiting(struct record_server *s)
{
	for (unsigned i = 0; i < s->nr_conns; i++)
		if (s->conns[i]->request && !s->conns[i]->dead)
			forward(s, s->conns[i]);
}

int record_serve_reply(struct record_server *s, struct record_conn *agent,
		       const struct pb_msg *m, const char *body)
{
	struct record_conn *client = agent->asker;

	agent->asker = NULL;
	if (client && client != agent) {
		client->waiting = false;
		record_conn_send(client, m->type, body, m->len, NULL, 0, -1);
	}
	record_serve_waiting(s);
	return 0;
}

/* Called before c is freed. If c is a client, an agent's answer to c must be dropped. This function
 * makes the agent its own asker, so the agent counts as busy until it has answered. */
void record_serve_forget(struct record_server *s, struct record_conn *c)
{
	if (c->asker && c->asker != c) {
		c->asker->waiting = false;
		record_conn_error(c->asker, -ESRCH, c->left ?
				  "the process was detached before it answered" :
				  "the process ended before it answered");
	}
	c->asker = NULL;
	for (unsigned i = 0; i < s->nr_conns; i++)
		if (s->conns[i]->asker == c && s->conns[i] != c)
			s->conns[i]->asker = s->conns[i];
	if (!c->client)
		record_serve_waiting(s);
}
