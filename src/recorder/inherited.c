/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * At the end of a recording, the recorder asks the agents that have a connection to detach. It
 * can't ask a forked child, which has no connection. But the child maps the ring. So this file
 * finds the child, and brings a thread into it that calls patchbay_leave(). During the search, a
 * child may fork again. So the search is repeated.
 */
#include "recorder/inherited.h"
#include "reader/drain.h"
#include "recorder/proc.h"
#include "recorder/processes.h"
#include "recorder/ring_memory.h"
#include "recorder/recording.h"
#include "recorder/session_dir.h"
#include "recorder/settings.h"

#define SEARCHES	4

struct leave {
	const struct record_options *o;
	const struct record_server *server;
	pid_t except;
};

static void visit(void *arg, pid_t pid)
{
	const struct leave *l = arg;
	const struct record_session *session = l->server->session;

	/* Leave out helpers, and processes that share the memory of `except`. (A process that
	 * detaches makes a helper, which stops the process's threads. The helper shares the
	 * process's memory, so it maps the ring, too.) */
	if (pid != l->except && !record_proc_is_helper(pid) && !record_proc_shares(pid, l->except))
		l->o->let_go(pid, session->agent, session->sock);
}

void record_inherited_leave(const struct record_options *o, const struct record_server *server,
			    pid_t pid)
{
	struct leave l = { o, server, pid };

	/* From now on, nobody answers agents. A child that waited for an answer in dlopen() would
	 * hold a lock of the loader that the new thread needs. */
	pb_drain_close_ring(server->drain);
	for (int i = 0; i < SEARCHES && record_procs_alive(server->ring); i++)
		record_procs_each(server->ring, visit, &l);
}
