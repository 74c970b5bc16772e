/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds threads by the numbers that agents wrote into the ring. Such a number may be wrong. If the
 * program has made a pid namespace, the number may belong to that namespace, and means nothing
 * outside of it. So there are two searches for a thread:
 *
 *   in the recorder's namespace  by the number: /proc/TID is exact, and cheap to read
 *   in other namespaces          in each process that maps the ring and lives in another namespace:
 *                                a thread's status file has its numbers in all namespaces
 *
 * If a thread is reported dead, its chunks are reused. If that thread still writes, this is fatal.
 * A dead thread that is reported alive does no harm. So in all cases of doubt, a thread is reported
 * alive.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder/proc.h"
#include "recorder/ring_memory.h"
#include "recorder/tasks.h"

#define MAPS_CACHE 64		/* a search remembers for this many processes
				 * whether they map the ring */

struct search {
	struct record_ring *r;
	struct pb_drain_thread *threads;
	unsigned nr, unknown;		/* nr: number of threads to find; unknown: number of threads
					 * that are not found yet */
	const _Atomic bool *stop;
	bool is_ours, incomplete;	/* is_ours: see record_proc_is_ours(); incomplete: some
					 * threads couldn't be looked at */
	struct { pid_t pid; enum record_maps maps; } cache[MAPS_CACHE];
};

static enum record_maps maps_cached(struct search *s, pid_t pid)
{
	unsigned i = (unsigned)pid % MAPS_CACHE;

	if (s->cache[i].pid != pid) {
		s->cache[i].maps = record_proc_maps(s->r, pid);
		s->cache[i].pid = pid;
	}
	return s->cache[i].maps;
}

/* True if the thread in that directory may be the thread that was seen at the time `seen`. A thread
 * that started later is a different thread. */
static bool is_old_enough(const char *dir, uint64_t seen)
{
	struct record_stat st;
	uint64_t tick = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);

	return record_proc_stat(dir, &st) || st.start <= seen / tick;
}

/* True if a status file couldn't be read because the thread is gone, or is hidden from the recorder
 * (hidepid). */
static bool is_out_of_sight(int err)
{
	return err == -ENOENT || err == -EPERM || err == -EACCES;
}

/* --- in the recorder's namespace ------------------------------------------ */

/* True if a thread with this number exists in the recorder's pid namespace and may be the traced
 * thread. */
static bool lives_here(struct search *s, const struct pb_drain_thread *t)
{
	struct record_status st;
	char dir[RECORD_PROC_PATH], path[RECORD_PROC_PATH + 8];

	snprintf(dir, sizeof(dir), "/proc/%u", t->tid);
	snprintf(path, sizeof(path), "%s/status", dir);
	int ret = record_proc_status(path, &st);
	if (is_out_of_sight(ret))
		return !kill((pid_t)t->tid, 0) || errno != ESRCH;
	if (ret)
		return true;
	if (st.dead || maps_cached(s, st.tgid) == RECORD_MAPS_NOT)
		return false;
	/* Read the start time from the process's directory. If the thread has ended since its
	 * status was read, its number may belong to a thread of another process by now. /proc/TID
	 * would then show that thread, but here the directory is missing. */
	snprintf(dir, sizeof(dir), "/proc/%d/task/%u", (int)st.tgid, t->tid);
	return is_old_enough(dir, t->seen);
}

/* --- in other namespaces -------------------------------------------------- */

struct nested {
	bool (*visit)(void *arg, pid_t pid, pid_t tid, const struct record_status *s);
	void (*repeat)(void *arg, pid_t pid);	/* called before the threads of a process are
						 * visited again; may be NULL */
	void *arg;
	struct search *s;
	pid_t pid;
	unsigned seen;
};

static bool nested_task(void *arg, pid_t tid)
{
	struct nested *n = arg;
	struct record_status st;

	n->seen++;
	int ret = record_task_status(n->pid, tid, &st);
	if (ret && !is_out_of_sight(ret))
		n->s->incomplete = true;
	return ret || st.dead || n->visit(n->arg, n->pid, tid, &st);
}

/* Visits the threads of a process. If a thread ends while the kernel lists the threads, the list
 * may be too short. The directory's number of links then shows that threads are missing, and the
 * visit is repeated. */
static bool nested_tasks(struct nested *n)
{
	char path[40];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)n->pid);
	for (unsigned tries = 0; tries < 4; tries++) {
		n->seen = 0;
		if (tries && n->repeat)
			n->repeat(n->arg, n->pid);
		int ret = record_proc_each(path, nested_task, n);
		if (ret == -ENOENT || ret == -ESRCH || (!ret && stat(path, &st)))
			return true;
		if (!ret && n->seen + 2 >= st.st_nlink)
			return true;
	}
	return false;
}

/* Visits the threads of a process in another pid namespace, if it maps the ring or may map it. */
static bool nested_process(void *arg, pid_t pid)
{
	struct nested *n = arg;
	struct record_status st;
	char path[40];

	if (n->s->stop && *n->s->stop)
		n->s->incomplete = true;
	if (n->s->incomplete)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	int ret = record_proc_status(path, &st);
	if (ret && !is_out_of_sight(ret))
		n->s->incomplete = true;
	if (ret || (n->s->is_ours && st.nr < 2) ||
	    record_proc_maps(n->s->r, pid) == RECORD_MAPS_NOT)
		return true;
	n->pid = pid;
	n->s->r->nested = true;
	if (!nested_tasks(n))
		n->s->incomplete = true;
	return true;
}

/* --- dead or alive -------------------------------------------------------- */

static bool has_number(const struct record_status *st, uint32_t tid)
{
	for (unsigned i = 0; i < st->nr; i++)
		if ((uint32_t)st->ids[i] == tid)
			return true;
	return false;
}

static bool mark_alive(void *arg, pid_t pid, pid_t tid, const struct record_status *st)
{
	struct search *s = arg;
	char dir[RECORD_PROC_PATH];

	snprintf(dir, sizeof(dir), "/proc/%d/task/%d", (int)pid, (int)tid);
	for (unsigned i = 0; i < s->nr; i++) {
		struct pb_drain_thread *t = &s->threads[i];

		if (!t->alive && has_number(st, t->tid) && is_old_enough(dir, t->seen)) {
			t->alive = true;
			s->unknown--;
		}
	}
	return true;
}

bool record_tasks_alive(struct record_ring *r, struct pb_drain_thread *threads, unsigned nr,
			const _Atomic bool *stop)
{
	struct search s = {
		.r = r, .threads = threads, .nr = nr, .stop = stop,
		.is_ours = record_proc_is_ours(),
	};
	struct nested n = { .visit = mark_alive, .arg = &s, .s = &s };

	for (unsigned i = 0; i < nr; i++) {
		if (stop && *stop)
			return false;
		threads[i].alive = s.is_ours && lives_here(&s, &threads[i]);
		s.unknown += !threads[i].alive;
	}
	if (s.unknown && record_proc_each("/proc", nested_process, &n))
		s.incomplete = true;
	return !s.incomplete;
}

/* --- names ---------------------------------------------------------------- */

/* A thread in another pid namespace. pid and tid are its numbers in that namespace. here_pid and
 * here_tid are its numbers in the recorder's namespace. */
struct nested_name {
	uint32_t pid, tid;
	pid_t here_pid, here_tid;
};

static bool runs(pid_t pid, pid_t tid, const char *exe)
{
	char link[64], path[PATH_MAX];

	if (!exe)
		return true;
	snprintf(link, sizeof(link), "/proc/%d/task/%d/exe", (int)pid, (int)tid);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	return !strcmp(path, exe);
}

static bool list_name(void *arg, pid_t pid, pid_t tid, const struct record_status *st)
{
	struct record_names *n = arg;
	struct nested_name *list = n->list;
	struct record_status leader;
	char path[40];

	if (!(n->nr & (n->nr - 1))) {		/* the list is full at the sizes 0, 1, 2, 4 ... */
		list = reallocarray(list, n->nr ? 2 * n->nr : 1, sizeof(*list));
		if (!list)
			return false;
		n->list = list;
	}
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (n->nr && list[n->nr - 1].here_pid == pid)
		leader.ids[0] = (pid_t)list[n->nr - 1].pid, leader.nr = 1;
	else if (record_proc_status(path, &leader))
		return true;
	list[n->nr++] = (struct nested_name){
		.pid = (uint32_t)leader.ids[leader.nr - 1], .tid = (uint32_t)st->ids[st->nr - 1],
		.here_pid = pid, .here_tid = tid,
	};
	return true;
}

/* Removes the threads of the process that was listed last, because they will be listed again. */
static void unlist_names(void *arg, pid_t pid)
{
	struct record_names *n = arg;
	const struct nested_name *list = n->list;

	while (n->nr && list[n->nr - 1].here_pid == pid)
		n->nr--;
}

void record_names_begin(struct record_names *n, struct record_ring *r, bool look_further)
{
	struct search s = { .r = r, .is_ours = record_proc_is_ours() };
	struct nested visit = { .visit = list_name, .repeat = unlist_names, .arg = n, .s = &s };

	*n = (struct record_names){ .ring = r, .is_ours = s.is_ours };
	if (look_further)
		record_proc_each("/proc", nested_process, &visit);
}

void record_names_end(struct record_names *n)
{
	free(n->list);
	n->list = NULL;
}

/* True if the process maps the ring. The last answer is kept, because the recorder asks for the
 * names of new threads in the order of the ring's table of threads, where the threads of one
 * process are usually neighbours. */
static bool is_traced(struct record_names *n, pid_t pid)
{
	if (n->last != pid)
		n->last_maps = record_proc_maps(n->ring, pid) == RECORD_MAPS;
	n->last = pid;
	return n->last_maps;
}

/* Reads the name of a thread that runs exe. On exec, the kernel changes the executable before the
 * name. So if the executable is still exe after the read, the thread hasn't left exe before its
 * name was read. But if the thread was just beginning exe, the result may be the name of the
 * former program. That is accepted. */
static void name_of(pid_t pid, pid_t tid, const char *exe, char comm[RECORD_COMM])
{
	record_read_comm(pid, tid, comm);
	if (*comm && !runs(pid, tid, exe))
		comm[0] = 0;
}

/* Finds threads of other namespaces with these numbers. If pid is 0, the thread may be in any
 * process. Returns the number of threads that were found. If there is exactly one, sets comm to its
 * name. */
static unsigned find_nested(const struct record_names *n, uint32_t pid, uint32_t tid,
			    const char *exe, char comm[RECORD_COMM])
{
	const struct nested_name *list = n->list;
	unsigned found = 0;

	for (unsigned i = 0; i < n->nr; i++)
		if ((!pid || list[i].pid == pid) && list[i].tid == tid &&
		    runs(list[i].here_pid, list[i].here_tid, exe) && !found++)
			name_of(list[i].here_pid, list[i].here_tid, exe, comm);
	if (found > 1)
		comm[0] = 0;
	return found;
}

void record_names_get(struct record_names *n, uint32_t pid, uint32_t tid, const char *exe,
		      char comm[RECORD_COMM])
{
	comm[0] = 0;
	if (n->is_ours && (pid_t)pid > 0 && (pid_t)tid > 0)
		name_of((pid_t)pid, (pid_t)tid, exe, comm);
	if (*comm && !is_traced(n, (pid_t)pid))
		comm[0] = 0;
	if (!*comm && n->nr && !find_nested(n, pid, tid, exe, comm))
		find_nested(n, 0, tid, exe, comm);
}
