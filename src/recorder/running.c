/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Examines a process that runs already: its executable, its command line (which may hold any
 * bytes), and whether it has ended. Opens files for an agent, with the rights of the agent's
 * process. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clean_text.h"
#include "recorder/loaded.h"
#include "recorder/proc.h"
#include "recorder/running.h"
#include "recorder/target.h"
#include "recorder/texts.h"

#define MAX_CMDLINE (1 << 20)

static size_t read_all(const char *path, char *to, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(to, 1, size, f) : 0;

	if (f)
		fclose(f);
	return n;
}

/* Splits the command line, in which each argument ends with NUL. A process may have overwritten its
 * command line. */
static char **split(char *text, size_t len)
{
	size_t nr = 0;

	for (size_t i = 0; i < len; i++)
		nr += !text[i];
	char **argv = calloc(nr + 2, sizeof(*argv));

	if (!argv)
		return NULL;
	nr = 0;
	for (size_t i = 0; i < len; i += strlen(text + i) + 1)
		argv[nr++] = text + i;
	return argv;
}

/* Prints the reason why the process's executable can't be examined. Returns NULL. */
static char **no_target(pid_t pid, int error)
{
	struct record_stat st;
	char dir[40];

	snprintf(dir, sizeof(dir), "/proc/%d", (int)pid);
	if (record_proc_stat(dir, &st))
		record_error("%d: no such process", (int)pid);
	else if (error == ENOENT && st.kernel)
		record_error("%d: is a thread of the kernel", (int)pid);
	else if (error == ENOENT)	/* a process without memory has ended, and is about to
					 * become a zombie */
		record_error("%d: the process has ended", (int)pid);
	else
		record_error("%d: %s", (int)pid, error != EACCES ? strerror(error) : geteuid() ?
			     "belongs to another user, or isn't dumpable; become root" :
			     "can't be looked at (a container without CAP_SYS_PTRACE, or a "
			     "security module?)");
	return NULL;
}

static int find_exe(struct record_target *t)
{
	char dir[RECORD_PROC_PATH], path[RECORD_PROC_PATH + 8];
	struct stat st;

	record_proc_path(t->pid, dir);
	snprintf(path, sizeof(path), "%s/exe", dir);
	ssize_t n = readlink(path, t->exe, sizeof(t->exe) - 1);
	if (n < 0 || stat(path, &st))
		return errno;
	t->exe[n] = 0;
	memcpy(t->path, t->exe, sizeof(t->path));
	t->dev = st.st_dev;
	t->ino = st.st_ino;
	return 0;
}

static char **read_arguments(const struct record_target *t)
{
	char path[40], *text = malloc(MAX_CMDLINE + PATH_MAX);

	if (!text)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)t->pid);
	size_t len = read_all(path, text, MAX_CMDLINE);
	if (!len)
		len = (size_t)snprintf(text, PATH_MAX, "%s", t->exe);
	text[len] = 0;
	len += text[len - 1] != 0;
	char **argv = split(text, len);
	if (!argv)
		free(text);
	return argv;
}

char **record_running_target(struct record_target *t, pid_t pid)
{
	int error;

	t->pid = pid;
	/* from here on, the pidfd shows if the process has ended, even if another process gets its
	 * PID */
	t->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	error = find_exe(t);
	if (error)
		return no_target(pid, error);
	snprintf(t->name, sizeof(t->name), "%s", "?");
	record_read_comm(pid, pid, t->name);
	pb_text_clean(t->name, '?', 0);
	t->nr_deleted = record_loaded_deleted(pid, &t->deleted);
	t->nr_firsts = record_loaded_firsts(pid, &t->firsts);
	return read_arguments(t);
}

void record_running_close(struct record_target *t)
{
	record_loaded_free(t->deleted, t->nr_deleted);
	free(t->firsts);
	t->deleted = NULL;
	t->firsts = NULL;
	t->nr_deleted = t->nr_firsts = 0;
	if (t->pidfd >= 0)
		close(t->pidfd);
	t->pidfd = -1;
}

void record_running_wait(const struct record_target *t, int ms)
{
	struct pollfd p = { t->pidfd, POLLIN, 0 };

	if (t->pidfd >= 0)
		poll(&p, 1, ms);
}

struct dying {
	pid_t pid;
	bool all;		/* no thread was found that runs on */
};

/* Whether the thread is ending, or has a SIGKILL that it hasn't handled yet. */
static bool is_dying(void *arg, pid_t tid)
{
	struct dying *d = arg;
	char path[RECORD_PROC_PATH + 8], status[RECORD_STATUS_MAX];
	const char *pending = NULL;
	struct record_stat st;

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)d->pid, (int)tid);
	if (record_proc_stat(path, &st) || st.exiting)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)d->pid, (int)tid);
	if (record_proc_read(path, status, sizeof(status)) > 0)
		pending = record_proc_value(status, "SigPnd");
	d->all = pending && strtoull(pending, NULL, 16) & 1u << (SIGKILL - 1);
	return d->all;
}

static bool has_ended(const struct record_target *t)
{
	struct pollfd p = { t->pidfd, POLLIN, 0 };
	struct record_stat st;
	char dir[RECORD_PROC_PATH];

	if (t->pidfd >= 0)
		return poll(&p, 1, 0) > 0;
	record_proc_path(t->pid, dir);
	return record_proc_stat(dir, &st) || !st.memory;
}

/* When a process ends or is killed, the kernel first gives each of its other threads a SIGKILL. */
bool record_running_dies(const struct record_target *t)
{
	struct dying d = { t->pid, true };
	char path[RECORD_PROC_PATH];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)t->pid);
	return !has_ended(t) && !record_proc_each(path, is_dying, &d) && d.all;
}

enum record_state record_running_state(const struct record_target *t)
{
	char dir[RECORD_PROC_PATH], path[RECORD_PROC_PATH + 8];
	struct stat st;

	if (has_ended(t))
		return RECORD_ENDED;
	record_proc_path(t->pid, dir);
	snprintf(path, sizeof(path), "%s/exe", dir);
	if (stat(path, &st) || (st.st_dev == t->dev && st.st_ino == t->ino))
		return RECORD_RUNS;
	return RECORD_RUNS_OTHER;
}

/* The path may be any text that an agent has sent. Opening a device or a FIFO may have side
 * effects. So the first descriptor only names the file (O_PATH). The file itself is opened when it
 * is known to be regular. */
int record_open_regular(const char *path)
{
	int name = open(path, O_PATH | O_CLOEXEC), fd = -EACCES;
	char link[40];
	struct stat st;

	if (name < 0)
		return -errno;
	if (!fstat(name, &st) && S_ISREG(st.st_mode)) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", name);
		fd = open(link, O_RDONLY | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	close(name);
	return fd;
}

/* --- the rights of a peer -------------------------------------------------- */

static int peer_groups(int fd, gid_t **list, int *nr)
{
	socklen_t len = 0;

	*list = NULL;
	*nr = 0;
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len))
		return 0;
	if (errno != ERANGE)	/* before Linux 4.13: the peer's main group must do */
		return errno == ENOPROTOOPT ? 0 : -errno;
	*list = malloc(len);
	if (!*list || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, *list, &len))
		return -errno;
	*nr = (int)(len / sizeof(**list));
	return 0;
}

/* These calls change only this thread; libc's setgroups() would change all threads. If a thread's
 * fsuid changes from 0, the kernel removes the thread's capabilities that override file
 * permissions. If it changes back to 0, the kernel adds them again. */
static int set_rights(uid_t uid, gid_t gid, int nr, const gid_t *groups)
{
	if (syscall(SYS_setgroups, nr, groups))
		return -errno;
	setfsgid(gid);
	setfsuid(uid);
	return (uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid ? 0 : -EPERM;
}

int record_rights_take(struct record_rights *r, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	gid_t *groups;
	int nr, ret;

	r->taken = false;
	r->groups = NULL;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return -errno;
	if (geteuid() || !peer.uid)
		return 0;
	r->nr = getgroups(0, NULL);
	r->groups = calloc((size_t)(r->nr > 0 ? r->nr : 1), sizeof(*r->groups));
	if (!r->groups || (r->nr = getgroups(r->nr, r->groups)) < 0)
		return -errno;
	ret = peer_groups(fd, &groups, &nr);
	if (!ret) {
		/* if the fsuid changes, the kernel makes the process undumpable */
		r->dumpable = prctl(PR_GET_DUMPABLE);
		r->taken = true;
		ret = set_rights(peer.uid, peer.gid, nr, groups);
	}
	free(groups);
	return ret;
}

void record_rights_restore(struct record_rights *r)
{
	if (r->taken) {
		set_rights(geteuid(), getegid(), r->nr, r->groups);
		prctl(PR_SET_DUMPABLE, r->dumpable);
	}
	free(r->groups);
	r->groups = NULL;
	r->taken = false;
}

/* --- files of a process ---------------------------------------------------- */

int record_running_open(pid_t pid, const char *path)
{
	char full[PATH_MAX + 64], dir[RECORD_PROC_PATH];

	record_proc_path(pid, dir);
	snprintf(full, sizeof(full), "%s/%s/%s", dir, *path == '/' ? "root" : "cwd", path);
	int fd = record_open_regular(full);
	if (fd == -EACCES && *path == '/' && geteuid())
		fd = record_open_regular(path);
	return fd;
}

/* The link in map_files leads to the mapped file itself, whatever happened to its path. The kernel
 * lets only root follow this link. */
int record_running_open_library(const struct record_target *t, const char *path,
				const uint64_t *bias)
{
	char link[80];
	int fd = -ENOENT;

	for (unsigned i = 0; i < t->nr_deleted && fd < 0; i++) {
		const struct record_deleted *d = &t->deleted[i];

		if (strcmp(d->path, path) || (bias && d->bias != *bias))
			continue;
		snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", (int)t->pid,
			 (unsigned long long)d->start, (unsigned long long)d->end);
		fd = record_open_regular(link);
	}
	return fd >= 0 ? fd : record_running_open(t->pid, path);
}

int record_running_open_for(const struct record_target *t, pid_t pid, int conn, const char *path,
			    const uint64_t *bias)
{
	struct record_rights rights;
	int err = record_rights_take(&rights, conn), fd = err;

	if (!err)
		fd = t && bias ? record_running_open_library(t, path, bias) :
				 record_running_open(pid, path);
	if (!err && fd < 0 && !bias)
		fd = record_open_regular(path);
	record_rights_restore(&rights);
	return fd;
}

/* A process that has mapped a file has had the right to read it. */
int record_running_open_mapped(pid_t pid, uint64_t address)
{
	char path[RECORD_PROC_PATH + 64], dir[RECORD_PROC_PATH], *line = NULL;
	unsigned long long start, end;
	size_t size = 0;
	int fd = -ENOENT;

	record_proc_path(pid, dir);
	snprintf(path, sizeof(path), "%s/maps", dir);
	FILE *f = fopen(path, "re");

	while (f && fd == -ENOENT && getline(&line, &size, f) > 0) {
		if (sscanf(line, "%llx-%llx", &start, &end) != 2 || start != address)
			continue;
		snprintf(path, sizeof(path), "%s/map_files/%llx-%llx", dir, start, end);
		fd = record_open_regular(path);
	}
	free(line);
	if (f)
		fclose(f);
	return fd;
}

bool record_running_replaced(const struct record_target *t, uint64_t bias, int *fd)
{
	int mapped;

	if (record_loaded_is(t->pid, t->firsts, t->nr_firsts, bias, *fd))
		return false;
	mapped = record_running_open_mapped(t->pid, bias);
	if (mapped < 0)
		return true;
	close(*fd);
	*fd = mapped;
	return false;
}

void record_running_exe_path(pid_t pid, char *path, size_t size)
{
	char link[RECORD_PROC_PATH + 8], dir[RECORD_PROC_PATH];

	record_proc_path(pid, dir);
	snprintf(link, sizeof(link), "%s/exe", dir);
	ssize_t n = readlink(link, path, size - 1);
	path[n > 0 ? n : 0] = 0;
}

int record_running_open_exe(pid_t pid)
{
	char path[RECORD_PROC_PATH + 8], dir[RECORD_PROC_PATH];

	record_proc_path(pid, dir);
	snprintf(path, sizeof(path), "%s/exe", dir);
	return record_open_regular(path);
}
