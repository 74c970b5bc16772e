/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads and parses files of /proc. */
#include "recorder/proc.h"
#include "abi/messages.h"
#include "recorder/ring_memory.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>


/* bits of the flags in a stat file */
#define PF_EXITING	0x00000004
#define PF_SIGNALED	0x00000400	/* a signal is killing the thread */
#define PF_KTHREAD	0x00200000

bool record_proc_is_ours(void)
{
	char self[24];
	ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = 0;
	return atoi(self) == getpid();
}

bool record_proc_shares(pid_t one, pid_t other)
{
	return one != other && !syscall(SYS_kcmp, one, other, KCMP_VM, 0, 0);
}

bool record_proc_is_helper(pid_t pid)
{
	char comm[RECORD_COMM] = "";

	record_read_comm(pid, pid, comm);
	return !strcmp(comm, PB_STOP_HELPER);
}

int record_proc_each(const char *dir, bool (*visit)(void *arg, pid_t nr), void *arg)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	if (!d)
		return -errno;
	while (errno = 0, (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) && !visit(arg, atoi(e->d_name)))
			break;
	int ret = e ? 0 : -errno;
	closedir(d);
	return ret;
}

ssize_t record_proc_read(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;
	size_t at = 0;

	if (fd < 0)
		return -errno;
	while (at < size - 1 && (n = read(fd, buf + at, size - 1 - at)) > 0)
		at += (size_t)n;
	n = n < 0 ? -errno : (ssize_t)at;
	close(fd);
	buf[n < 0 ? 0 : n] = 0;
	return n;
}

/* --- memory --------------------------------------------------------------- */

struct maps_visit {
	const struct record_ring *r;
	pid_t pid;
	enum record_maps found;
	bool any;		/* a thread that was looked at has memory */
	char *path;		/* buffer for the directory of the thread, or NULL */
};

bool record_map_parse(char *line, struct record_map *m)
{
	char prot[8];
	int at = 0;

	if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %n", &m->start, &m->end, prot, &m->offset,
		   &m->major, &m->minor, &m->ino, &at) < 7 || !at || m->end <= m->start)
		return false;
	m->read = prot[0] == 'r';
	m->write = prot[1] == 'w';
	m->exec = prot[2] == 'x';
	m->path = line + at;
	m->path[strcspn(m->path, "\n")] = 0;
	return true;
}

static bool is_ring(const struct record_ring *r, char *line)
{
	struct record_map m;

	return strstr(line, "/memfd:patchbay-ring") && record_map_parse(line, &m) &&
	       m.ino == r->ino && makedev(m.major, m.minor) == r->dev;
}

/* Looks for the ring in a maps file. Sets *any to true if the thread has any memory. */
static enum record_maps maps_of(const struct record_ring *r, const char *path, bool *any)
{
	char *line = NULL;
	size_t cap = 0;
	bool found = false;
	FILE *f = fopen(path, "re");

	*any = false;
	if (!f)
		return errno == EACCES || errno == EPERM ? RECORD_MAPS_UNKNOWN :
		       errno == ENOENT || errno == ESRCH ? RECORD_MAPS_NOT : RECORD_MAPS_UNKNOWN;
	errno = 0;
	while (!found && getline(&line, &cap, f) > 0) {
		*any = true;
		found = is_ring(r, line);
	}
	bool failed = ferror(f) && errno != ESRCH;
	free(line);
	fclose(f);
	return found ? RECORD_MAPS : failed ? RECORD_MAPS_UNKNOWN : RECORD_MAPS_NOT;
}

static bool visit_maps(void *arg, pid_t tid)
{
	struct maps_visit *v = arg;
	char path[80];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", (int)v->pid, (int)tid);
	v->found = maps_of(v->r, path, &v->any);
	return !v->any && v->found == RECORD_MAPS_NOT;
}

/* True for processes that are never traced: this process, kernel threads and, unless another
 * process made the ring, processes that are older than this one. False for the process that was
 * attached, which is traced although it is older. */
static bool is_bystander(const struct record_ring *r, pid_t pid)
{
	static _Atomic uint64_t own_start;
	static _Atomic pid_t own;
	char path[RECORD_PROC_PATH];
	struct record_stat s;

	if (!own_start) {
		ssize_t n = readlink("/proc/self", path, sizeof(path) - 1);

		path[n > 0 ? n : 0] = 0;
		if (n <= 0 || record_proc_stat("/proc/self", &s))
			return false;
		own = atoi(path);
		own_start = s.start;
	}
	if (pid == r->attached)
		return false;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return pid == own || (!record_proc_stat(path, &s) &&
			      (s.kernel || (!r->foreign && s.start < own_start)));
}

/* All threads of a process share its memory. But if the main thread has exited, /proc/PID shows no
 * memory, and the directory of another thread must be read. */
enum record_maps record_proc_maps(const struct record_ring *r, pid_t pid)
{
	struct maps_visit v = { .r = r, .pid = pid };
	char path[80];

	if (is_bystander(r, pid))
		return RECORD_MAPS_NOT;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	v.found = maps_of(r, path, &v.any);
	if (v.any || v.found != RECORD_MAPS_NOT)
		return v.found;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	int ret = record_proc_each(path, visit_maps, &v);
	return ret && ret != -ENOENT && ret != -ESRCH ? RECORD_MAPS_UNKNOWN : v.found;
}

static bool has_exe(const char *dir)
{
	char link[RECORD_PROC_PATH + 8], path[8];

	snprintf(link, sizeof(link), "%s/exe", dir);
	return readlink(link, path, sizeof(path)) >= 0 || errno != ENOENT;
}

static bool visit_path(void *arg, pid_t tid)
{
	struct maps_visit *v = arg;

	snprintf(v->path, RECORD_PROC_PATH, "/proc/%d/task/%d", (int)v->pid, (int)tid);
	v->any = has_exe(v->path);
	return !v->any;
}

void record_proc_path(pid_t pid, char path[RECORD_PROC_PATH])
{
	struct maps_visit v = { .pid = pid, .path = path };
	char dir[RECORD_PROC_PATH];

	snprintf(path, RECORD_PROC_PATH, "/proc/%d", (int)pid);
	if (has_exe(path))
		return;
	snprintf(dir, sizeof(dir), "/proc/%d/task", (int)pid);
	record_proc_each(dir, visit_path, &v);
	if (!v.any)
		snprintf(path, RECORD_PROC_PATH, "/proc/%d", (int)pid);
}

/* --- status, stat, name --------------------------------------------------- */

const char *record_proc_value(const char *status, const char *key)
{
	size_t len = strlen(key);

	for (const char *p = status; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (!strncmp(p, key, len) && p[len] == ':')
			return p + len + 1 + strspn(p + len + 1, " \t");
	}
	return NULL;
}

bool record_proc_is_dead(const char *status)
{
	const char *state = record_proc_value(status, "State");

	return state && (*state == 'Z' || *state == 'X');
}

static bool users_are_ours(const char *text)
{
	unsigned real, effective, saved;

	return sscanf(text, "%u %u %u", &real, &effective, &saved) == 3 &&
	       real == getuid() && effective == geteuid() && saved == effective;
}

int record_proc_status(const char *path, struct record_status *s)
{
	char *line = NULL, *end;
	const char *p;
	size_t cap = 0;
	FILE *f = fopen(path, "re");

	*s = (struct record_status){ 0 };
	if (!f)
		return errno == ESRCH ? -ENOENT : -errno;
	errno = 0;
	while (!s->nr && getline(&line, &cap, f) > 0) {
		s->dead |= record_proc_is_dead(line);
		if ((p = record_proc_value(line, "Tgid")))
			s->tgid = atoi(p);
		else if ((p = record_proc_value(line, "Uid")))
			s->same_user = users_are_ours(p);
		else if ((p = record_proc_value(line, "NSpid")))
			for (; s->nr < RECORD_PID_LEVELS; p = end) {
				long id = strtol(p, &end, 10);

				if (end == p)
					break;
				s->ids[s->nr++] = (pid_t)id;
			}
	}
	int e = errno;
	free(line);
	fclose(f);
	return s->nr ? 0 : e == ESRCH ? -ENOENT : e ? -e : -ENOSYS;
}

int record_task_status(pid_t pid, pid_t tid, struct record_status *s)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	return record_proc_status(path, s);
}

/* Returns field nr of a stat file, numbered as in proc(5). p points to field 3, the state, because
 * the name in field 2 may contain anything. */
static uint64_t stat_field(const char *p, unsigned nr)
{
	for (unsigned i = 3; p && i < nr; i++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	return p ? strtoull(p, NULL, 10) : 0;
}

int record_proc_stat(const char *dir, struct record_stat *s)
{
	char path[RECORD_PROC_PATH + 8], text[1200];

	snprintf(path, sizeof(path), "%s/stat", dir);
	ssize_t n = record_proc_read(path, text, sizeof(text));
	if (n <= 0)
		return n ? (int)n : -ENOENT;
	const char *p = strrchr(text, ')');
	if (!p || !p[1])
		return -EINVAL;
	p += 2;
	s->kernel = stat_field(p, 9) & PF_KTHREAD;
	s->exiting = stat_field(p, 9) & (PF_EXITING | PF_SIGNALED) || *p == 'Z' || *p == 'X';
	s->start = stat_field(p, 22);
	s->memory = stat_field(p, 23);
	s->env_end = stat_field(p, 51);
	return 0;
}

void record_read_comm(pid_t pid, pid_t tid, char comm[RECORD_COMM])
{
	char path[64], buf[RECORD_COMM + 1];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	ssize_t n = record_proc_read(path, buf, sizeof(buf));
	if (n <= 1)
		return;
	buf[n - 1] = 0;		/* in place of the newline */
	memcpy(comm, buf, (size_t)n);
}
