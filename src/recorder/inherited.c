/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * At the end of a recording, the recorder asks the agents that have a connection to detach. It
 * can't ask a forked child, which has no connection. But the child maps the ring. So this file
 * finds the child, and brings a thread into it that calls patchbay_leave(). During the search, a
 * child may fork again. So the search is repeated.
 *
 * A child may not answer, for example because it was stopped. Such children must take no time from
 * the others. After each search, this file goes through all children that were found, some at a
 * time, and gives each of them only a part of the time that is left. The next search finds the
 * children that remain.
 *
 * For each child, the recorder makes a thread that controls threads of the child by ptrace. When
 * the recorder's thread ends, the kernel lets the child's threads go.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clean_text.h"
#include "base/sys.h"
#include "recorder/inherited.h"
#include "reader/drain.h"
#include "recorder/proc.h"
#include "recorder/processes.h"
#include "recorder/ring_memory.h"
#include "recorder/recording.h"
#include "recorder/session_dir.h"
#include "recorder/settings.h"
#include "recorder/start_program.h"
#include "recorder/texts.h"

#define SEARCHES	4		/* searches after which a child may leave later don't
					 * count */
#define PAUSE_NS	20000000
#define AT_ONCE		8
#define LEAVE_NS	20000000000u	/* inherited.h and doc/design/attach.md have these 20 s */
#define HURRY_NS	500000000u
#define SHARE_NS	100000000u	/* a child gets at least this much of the time */
#define SLOW_MS		2000		/* a longer wait is reported */
#define NAMED		5

struct child {
	const struct leave *l;
	pid_t pid;
	uint64_t until;
	int err;
	char why[700];
	pthread_t thread;
	bool started;
};

struct leave {
	const struct record_options *o;
	const struct record_server *server;
	pid_t except;			/* the recorded process itself, which isn't made to leave
					 * here */
	_Atomic uint64_t limit;		/* when all waits end */
	bool signalled;			/* a signal has shortened the waits */
	pid_t *pids;			/* the children that the last search has found */
	unsigned nr;
	pid_t *asked;			/* children that are leaving, but haven't answered yet */
	unsigned nr_asked;
	char why[700];			/* why one of the children can't be left; "": no reason is
					 * known */
	pid_t refused;			/* the child to which `why` belongs */
	int done;			/* an eventfd, to which leave_main() writes at its end */
};

/* --- the search ----------------------------------------------------------- */

static void add(pid_t **pids, unsigned *nr, pid_t pid)
{
	pid_t *more = realloc(*pids, (*nr + 1) * sizeof(*more));

	if (!more)
		return;
	*pids = more;
	more[(*nr)++] = pid;
}

/* Leaves out helpers, and processes that share the memory of `except`. (A process that detaches
 * makes a helper, which stops the process's threads. The helper shares the process's memory, so it
 * maps the ring, too.) */
static void visit(void *arg, pid_t pid)
{
	struct leave *l = arg;

	if (pid != l->except && !record_proc_is_helper(pid) && !record_proc_shares(pid, l->except))
		add(&l->pids, &l->nr, pid);
}

static void search(struct leave *l)
{
	l->nr = 0;
	if (record_procs_alive(l->server->ring))
		record_procs_each(l->server->ring, visit, l);
}

/* --- the children --------------------------------------------------------- */

static void *child_main(void *arg)
{
	struct child *c = arg;
	const struct record_session *session = c->l->server->session;
	const struct record_let_go let_go = {
		.pid = c->pid, .agent = session->agent, .session = session->sock,
		.until = c->until, .limit = &c->l->limit,
	};

	c->err = c->l->o->let_go(&let_go, c->why, sizeof(c->why));
	return NULL;
}

static bool was_asked(const struct leave *l, pid_t pid)
{
	for (unsigned i = 0; i < l->nr_asked; i++)
		if (l->asked[i] == pid)
			return true;
	return false;
}

/* Makes these children leave, all at once. Returns whether one of them may leave later: it hasn't
 * answered yet, or another process controls it by ptrace, for example the helper that stops its
 * threads. */
static bool leave_some(struct leave *l, const pid_t *pids, unsigned nr, uint64_t until)
{
	struct child children[AT_ONCE] = { 0 };
	bool later = false;

	for (unsigned i = 0; i < nr; i++) {
		struct child *c = &children[i];

		c->l = l;
		c->pid = pids[i];
		c->until = until;
		c->err = -EINPROGRESS;
		c->started = !was_asked(l, c->pid) &&
			     !pthread_create(&c->thread, NULL, child_main, c);
	}
	for (unsigned i = 0; i < nr; i++) {
		const struct child *c = &children[i];

		if (c->started)
			pthread_join(c->thread, NULL);
		if (c->err == -EINPROGRESS && c->started)
			add(&l->asked, &l->nr_asked, c->pid);
		later |= c->err == -ETIMEDOUT || c->err == -EBUSY || c->err == -EINPROGRESS;
		if (!c->err || c->err == -ESRCH || c->err == -ETIMEDOUT ||
		    c->err == -EINPROGRESS || l->refused)
			continue;
		l->refused = c->pid;
		memcpy(l->why, c->why, sizeof(l->why));
	}
	return later;
}

/* Goes through the children that were found. All of them together get 1/share of the time that is
 * left. The result is that of leave_some(). */
static bool leave_each(struct leave *l, unsigned share)
{
	bool later = false;

	for (unsigned i = 0; i < l->nr; i += AT_ONCE) {
		unsigned nr = l->nr - i < AT_ONCE ? l->nr - i : AT_ONCE;
		unsigned turns = (l->nr - i + AT_ONCE - 1) / AT_ONCE;
		uint64_t now = pb_now_ns(), limit = l->limit, ns;

		if (now >= limit)
			break;
		ns = (limit - now) / turns / share;
		later |= leave_some(l, l->pids + i, nr, now + (ns > SHARE_NS ? ns : SHARE_NS));
	}
	return later;
}

static void *leave_main(void *arg)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct leave *l = arg;
	unsigned share = 2;

	search(l);
	for (int i = 0; l->nr && i < SEARCHES && pb_now_ns() < l->limit; search(l)) {
		l->refused = 0;
		if (!leave_each(l, share))
			i++;
		share = 1;
		nanosleep(&pause, NULL);
	}
	if (l->done >= 0)
		eventfd_write(l->done, 1);
	return NULL;
}

/* --- the user ------------------------------------------------------------- */

/* Writes "NAME (PID), NAME (PID) and N more". */
static void put_names(FILE *f, const struct leave *l)
{
	unsigned named = l->nr > NAMED ? NAMED : l->nr;

	for (unsigned i = 0; i < named; i++) {
		char comm[RECORD_COMM] = "?";

		record_read_comm(l->pids[i], l->pids[i], comm);
		pb_text_clean(comm, '?', 0);
		fprintf(f, "%s%s (%d)", i ? ", " : "", comm, (int)l->pids[i]);
	}
	if (l->nr > named)
		fprintf(f, " and %u more", l->nr - named);
}

static void report(const struct leave *l, bool hurry)
{
	char *names = NULL;
	bool one = l->nr == 1, refused = false;
	size_t size;
	FILE *f = open_memstream(&names, &size);

	if (f) {
		put_names(f, l);
		fclose(f);
	}
	for (unsigned i = 0; i < l->nr; i++)
		refused |= l->pids[i] == l->refused;
	record_error("%u process%s the agent and run%s on with it: %s; %s%s", l->nr,
		     one ? " keeps" : "es keep", one ? "s" : "", names ? names : "?",
		     refused ? "" : one ? "it " : "they ",
		     refused ? l->why :
		     l->signalled || hurry ? "had no more time to answer" :
		     "didn't answer within 20 s");
	free(names);
}

/* Reads the signals. A signal that ends recordings ends the waits. */
static void on_signals(struct leave *l, const struct record_signals *signals)
{
	struct signalfd_siginfo si;
	uint64_t end = pb_now_ns() + HURRY_NS;

	while (read(signals->fd, &si, sizeof(si)) == sizeof(si)) {
		if (!record_signals_end(signals, (int)si.ssi_signo))
			continue;
		l->signalled = true;
		if (end < l->limit)
			l->limit = end;
	}
}

static void wait_for_end(struct leave *l, const struct record_signals *signals)
{
	struct pollfd fds[2] = { { l->done, POLLIN, 0 }, { signals->fd, POLLIN, 0 } };
	uint64_t begin = pb_now_ns();
	bool said = false;

	while (!(fds[0].revents & POLLIN)) {
		if (poll(fds, 2, said ? -1 : SLOW_MS) < 0)
			continue;
		if (fds[1].revents)
			on_signals(l, signals);
		if (said || l->signalled || pb_now_ns() - begin < SLOW_MS * 1000000ull)
			continue;
		said = true;
		record_error("forked children aren't detached yet; press ^C to stop waiting");
	}
}

void record_inherited_leave(const struct record_options *o, const struct record_server *server,
			    pid_t pid, const struct record_signals *signals, bool hurry)
{
	struct leave l = {
		.o = o, .server = server, .except = pid,
		.limit = pb_now_ns() + (hurry ? HURRY_NS : LEAVE_NS),
	};
	pthread_t thread;

	/* From now on, the recorder doesn't answer agents. A child that waits for an answer in
	 * dlopen() holds a lock of the loader that the new thread needs. So end such waits. */
	pb_drain_close_ring(server->drain);
	if (!record_procs_alive(server->ring))
		return;
	l.done = eventfd(0, EFD_CLOEXEC);
	if (l.done < 0 || pthread_create(&thread, NULL, leave_main, &l)) {
		leave_main(&l);
	} else {
		wait_for_end(&l, signals);
		pthread_join(thread, NULL);
	}
	if (l.done >= 0)
		close(l.done);
	if (l.nr)
		report(&l, hurry);
	free(l.pids);
	free(l.asked);
}
