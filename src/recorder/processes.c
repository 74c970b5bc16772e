/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A process is traced while it maps the ring. File locks show exactly whether any process maps the
 * ring, even if the recorder may not look at that process.
 *
 * For each agent, the recorder opens the ring's file once more and takes a shared flock() on that
 * open file. A mapping holds the open file, and the open file holds the lock. Neither fork nor
 * closing the descriptor ends the lock. The lock ends when each process with the mapping has ended,
 * has unmapped the ring, or has called exec. So the exclusive lock can be taken exactly when no
 * process maps the ring.
 *
 * /proc is used to open the ring's file again, for names, and for two searches. One search finds
 * processes that are starting. If an agent got no lock, the other search finds mappings of the
 * ring. /proc hides the mappings of other users' processes, of processes that aren't dumpable, and
 * of a main thread that has exited.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "recorder/proc.h"
#include "recorder/processes.h"
#include "recorder/ring_memory.h"
#include "recorder/session_dir.h"

/* --- the lock ------------------------------------------------------------- */

/* The test for the exclusive lock holds that lock for a moment. During that moment, an agent's
 * shared lock can't be taken. So this mutex keeps the test and requests for shared locks apart. */
static pthread_mutex_t trying = PTHREAD_MUTEX_INITIALIZER;

static bool is_locked(int fd)
{
	pthread_mutex_lock(&trying);
	bool locked = flock(fd, LOCK_EX | LOCK_NB) && (errno == EWOULDBLOCK || errno == EINTR);
	flock(fd, LOCK_UN);
	pthread_mutex_unlock(&trying);
	return locked;
}

static bool lock_shared(int fd)
{
	pthread_mutex_lock(&trying);
	bool locked = !flock(fd, LOCK_SH | LOCK_NB);
	pthread_mutex_unlock(&trying);
	return locked;
}

int record_procs_share(struct record_ring *r)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && lock_shared(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	/* There is no /proc, or no free descriptor. The agent then gets the recorder's own open
	 * file, which has no shared lock. So record_procs_alive() has to search for mappings. */
	r->unlocked = true;
	return r->fd;
}

static bool visit_first(void *arg, pid_t pid)
{
	struct { const struct record_ring *r; bool found; } *v = arg;

	v->found = record_proc_maps(v->r, pid) == RECORD_MAPS;
	return !v->found;
}

bool record_procs_alive(const struct record_ring *r)
{
	struct { const struct record_ring *r; bool found; } v = { .r = r };

	if (is_locked(r->fd))
		return true;
	if (r->unlocked)
		record_proc_each("/proc", visit_first, &v);
	return v.found;
}

/* --- between exec and the agent's start ----------------------------------- */

struct starting {
	const struct record_session *s;
	const struct record_ring *r;
	char want[sizeof(((struct record_session *)0)->sock) + 20];
	uint64_t since;
	bool found;
};

/* True if a thread in the ring's table belongs to the process with this PID. */
static bool is_known(const struct record_ring *r, pid_t pid)
{
	for (uint32_t i = record_ring_nr_threads(r); i-- > 0;)
		if (record_ring_thread(r, i)->pid == (uint32_t)pid)
			return true;
	return false;
}

/* Called for a process that only root may look at, because its executable isn't readable. Such a
 * process counts as starting if it was traced before and all its user ids are equal to the
 * recorder's. With other ids, the loader would ignore the agent. */
static bool hidden_starts(const struct starting *v, pid_t pid)
{
	struct record_status st;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return is_known(v->r, pid) && !record_proc_status(path, &st) && !st.dead && st.same_user;
}

/* Sets v->found if the process is starting. A process is starting if its initial environment has
 * the session's variable PATCHBAY_SESSION. The agent removes this variable after it has mapped the
 * ring. While exec makes the new image, a process has no environment, so that process also counts
 * as starting. Processes that are older than the recorder are left out, except the process that
 * was attached. */
static bool visit_starting(void *arg, pid_t pid)
{
	struct starting *v = arg;
	struct record_stat before, after;
	char dir[RECORD_PROC_PATH], path[RECORD_PROC_PATH + 8], *var = NULL;
	size_t cap = 0;
	bool any = false;

	snprintf(dir, sizeof(dir), "/proc/%d", (int)pid);
	if (pid == getpid() || record_proc_stat(dir, &before) || before.kernel ||
	    (before.start < v->since && pid != v->r->attached))
		return true;
	snprintf(path, sizeof(path), "%s/environ", dir);
	FILE *f = fopen(path, "re");
	if (!f) {
		v->found = errno == EACCES && hidden_starts(v, pid);
		return !v->found;
	}
	while (!v->found && getdelim(&var, &cap, 0, f) > 0) {
		any = true;
		v->found = !strcmp(var, v->want);
	}
	free(var);
	fclose(f);
	/* if the program unmapped its environment, the file is empty, too, but env_end isn't 0 */
	if (!any && !before.env_end && before.memory)
		v->found = !record_proc_stat(dir, &after) && after.memory;
	return !v->found;
}

bool record_procs_starting(const struct record_session *s, const struct record_ring *r)
{
	struct starting v = { .s = s, .r = r };
	struct record_stat own;

	snprintf(v.want, sizeof(v.want), "PATCHBAY_SESSION=%s", s->sock);
	if (!record_proc_stat("/proc/self", &own))
		v.since = own.start;
	record_proc_each("/proc", visit_starting, &v);
	return v.found;
}

/* --- which processes map the ring ------------------------------------------- */

struct scan {
	const struct record_ring *r;
	struct record_procs *p;
};

static bool visit_scan(void *arg, pid_t pid)
{
	struct scan *v = arg;
	enum record_maps maps = record_proc_maps(v->r, pid);

	if (maps == RECORD_MAPS && !v->p->nr++)
		v->p->first = pid;
	if (maps == RECORD_MAPS_UNKNOWN && is_known(v->r, pid) && !v->p->hidden++)
		v->p->first_hidden = pid;
	return true;
}

void record_procs_scan(const struct record_ring *r, struct record_procs *p)
{
	struct scan v = { r, p };

	*p = (struct record_procs){ 0 };
	record_proc_each("/proc", visit_scan, &v);
}

struct each {
	const struct record_ring *r;
	void (*visit)(void *arg, pid_t pid);
	void *arg;
};

static bool visit_each(void *arg, pid_t pid)
{
	struct each *v = arg;

	if (record_proc_maps(v->r, pid) == RECORD_MAPS)
		v->visit(v->arg, pid);
	return true;
}

void record_procs_each(const struct record_ring *r, void (*visit)(void *arg, pid_t pid), void *arg)
{
	struct each v = { r, visit, arg };

	record_proc_each("/proc", visit_each, &v);
}
