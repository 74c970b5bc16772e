/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The session's directory is BASE/PID-XXXXXX. It holds the socket that agents connect to. With
 * --serve, it also holds the socket for `patchbay control`. No other user may enter the directory.
 *
 * BASE is $XDG_RUNTIME_DIR/patchbay or /tmp/patchbay-UID. If another user has taken the name
 * /tmp/patchbay-UID, a spare base /tmp/patchbay-UID-XXXXXX is used. `patchbay control` searches all
 * spare bases of its user.
 *
 * The recorder holds a flock() on its session's directory. If a directory has no lock, and the PID
 * in its name isn't in use, its recorder was killed, and the next recorder removes the directory.
 * Unlike a test of the PID, the lock also works between pid namespaces.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/agent_name.h"
#include "abi/messages.h"
#include "base/first_library.h"
#include "recorder/session_dir.h"
#include "recorder/texts.h"

#ifndef PB_AGENT_DIR
#define PB_AGENT_DIR "../lib"
#endif

#define TMP "/tmp"		/* not $TMPDIR, because `patchbay control` may have a different
				 * $TMPDIR */
#define MAX_TRIES 16		/* limit of the attempts to make a directory. An attempt fails if
				 * another recorder removes the new directory */

/* --- directories that hold sessions --------------------------------------- */

static int is_private(const char *dir)
{
	struct stat st;

	if (lstat(dir, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	/* in /tmp, another user may have made the directory first */
	if (st.st_uid != geteuid() || st.st_mode & 077)
		return -EPERM;
	return 0;
}

static int make_private(const char *dir)
{
	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	return is_private(dir);
}

static bool runtime_base(char base[RECORD_BASE])
{
	const char *run = getenv("XDG_RUNTIME_DIR");

	/* a socket's path has 108 bytes; "/patchbay/PID-XXXXXX/control" needs up to 32 of these */
	if (!run || *run != '/' || strlen(run) >= 60)
		return false;
	snprintf(base, RECORD_BASE, "%s/patchbay", run);
	return true;
}

/* Calls visit() for each spare base of this user, until visit() returns true. */
static bool each_spare_base(bool (*visit)(void *arg, const char *base), void *arg)
{
	char prefix[40], base[RECORD_BASE];
	DIR *d = opendir(TMP);
	bool done = false;

	if (!d)
		return false;
	int n = snprintf(prefix, sizeof(prefix), "patchbay-%u-", (unsigned)geteuid());
	for (struct dirent *e; !done && (e = readdir(d));)
		if (!strncmp(e->d_name, prefix, (size_t)n) && strlen(e->d_name) == (size_t)n + 6) {
			snprintf(base, sizeof(base), TMP "/%.40s", e->d_name);
			done = !is_private(base) && visit(arg, base);
		}
	closedir(d);
	return done;
}

static bool take_base(void *arg, const char *base)
{
	snprintf(arg, RECORD_BASE, "%s", base);
	return true;
}

int record_session_base(char base[RECORD_BASE])
{
	if (runtime_base(base) && !make_private(base))
		return 0;
	snprintf(base, RECORD_BASE, TMP "/patchbay-%u", (unsigned)geteuid());
	if (!make_private(base) || each_spare_base(take_base, base))
		return 0;
	snprintf(base, RECORD_BASE, TMP "/patchbay-%u-XXXXXX", (unsigned)geteuid());
	return mkdtemp(base) ? 0 : -errno;
}

/* --- existing sessions ---------------------------------------------------- */

struct sessions {
	bool (*visit)(void *arg, const char *control);
	void *arg;
};

static bool each_in_base(void *arg, const char *base)
{
	struct sessions *s = arg;
	char path[RECORD_BASE + 300];
	DIR *d = opendir(base);
	bool done = false;

	if (!d)
		return false;
	for (struct dirent *e; !done && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/control", base, e->d_name);
		done = !access(path, F_OK) && s->visit(s->arg, path);
	}
	closedir(d);
	return done;
}

void record_session_each(bool (*visit)(void *arg, const char *control), void *arg)
{
	struct sessions s = { visit, arg };
	char base[RECORD_BASE];

	if (runtime_base(base) && !is_private(base) && each_in_base(&s, base))
		return;
	snprintf(base, sizeof(base), TMP "/patchbay-%u", (unsigned)geteuid());
	if (!is_private(base) && each_in_base(&s, base))
		return;
	each_spare_base(each_in_base, &s);
}

/* --- a session's directory ------------------------------------------------ */

static void remove_files(int dir)
{
	static const char *const names[] = { "sock", "control", PB_MISSED_FILE, PB_AGENT_NAME };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(dir, names[i], 0);
}

/* Opens and locks the directory. Returns the descriptor or -errno. -EWOULDBLOCK: another recorder
 * holds the lock. */
static int lock_dir(int base, const char *name)
{
	int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	return fd >= 0 ? fd : -errno;
}

/* Removes the directories of killed recorders. If the PID in a directory's name is in use, the
 * directory stays: its recorder may not have locked it yet. If the directory can't be locked, it
 * stays, too: its recorder lives, or the file system has no flock(). */
static void remove_stale(const char *base)
{
	DIR *d = opendir(base);

	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		const char *dash = strchr(e->d_name, '-');
		int pid = atoi(e->d_name), fd;

		if (pid <= 0 || !dash || strlen(dash) != 7 || !kill(pid, 0) || errno != ESRCH)
			continue;
		fd = lock_dir(dirfd(d), e->d_name);
		if (fd < 0)
			continue;
		remove_files(fd);
		unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
		close(fd);
	}
	closedir(d);
}

/* Makes and locks the session's directory. Before the lock is taken, a recorder in another pid
 * namespace may remove the directory, because this recorder's PID isn't in use there. So there are
 * several attempts. */
static int make_dir(struct record_session *s, const char *base)
{
	struct stat made, there;

	for (unsigned i = 0; i < MAX_TRIES; i++) {
		snprintf(s->dir, sizeof(s->dir), "%s/%d-XXXXXX", base, (int)getpid());
		if (!mkdtemp(s->dir))
			return -errno;
		s->lock_fd = lock_dir(AT_FDCWD, s->dir);
		if (s->lock_fd == -ENOENT || s->lock_fd == -EWOULDBLOCK)
			continue;
		/* The directory stays without a lock. Usually the file system has no flock(). In
		 * that case no other recorder can lock the directory, so none removes it. */
		if (s->lock_fd < 0)
			return 0;
		if (!fstat(s->lock_fd, &made) && !lstat(s->dir, &there) &&
		    made.st_ino == there.st_ino)
			return 0;
		close(s->lock_fd);
	}
	s->lock_fd = -1;
	return -EAGAIN;
}

static int listen_at(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || chmod(path, 0600) || listen(fd, 1024)) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	return fd;
}

/* Finds the agent. In a build directory, the agent is beside the executable `patchbay`. Otherwise
 * the agent is in the library directory of the installation tree, even if the tree was moved. The
 * loader splits LD_PRELOAD at blanks and colons. So if the agent's path has a blank or a colon,
 * s->agent is a link in the session's directory. A session without a directory uses the path
 * itself. */
int record_session_find_agent(struct record_session *s)
{
	char exe[PATH_MAX], beside[2 * PATH_MAX], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	exe[n > 0 ? n : 0] = 0;
	slash = strrchr(exe, '/');
	if (slash)
		slash[1] = 0;
	snprintf(beside, sizeof(beside), "%s%s", exe, PB_AGENT_NAME);
	if (!realpath(beside, path)) {
		snprintf(beside, sizeof(beside), "%s%s/%s", *PB_AGENT_DIR == '/' ? "" : exe,
			 PB_AGENT_DIR, PB_AGENT_NAME);
		if (!realpath(beside, path))
			return record_error("%s: %s; is Patchbay installed completely?", beside,
					    strerror(errno));
	}
	if (access(path, R_OK))
		return record_error("%s: %s; is Patchbay installed completely?", path,
				    strerror(errno));
	if (s->dir[0] && strpbrk(path, " :\t\n")) {
		snprintf(s->agent, sizeof(s->agent), "%s/%s", s->dir, PB_AGENT_NAME);
		if (symlink(path, s->agent))
			return record_error("%s: %s", s->agent, strerror(errno));
	} else {
		memcpy(s->agent, path, sizeof(path));
	}
	return 0;
}

int record_session_open(struct record_session *s, bool serve)
{
	char base[RECORD_BASE];
	int ret;

	*s = (struct record_session){ .listen_fd = -1, .control_fd = -1, .lock_fd = -1 };
	/* try again if the last session in a spare base removes the base between
	 * record_session_base() and make_dir() */
	for (unsigned i = 0; i < MAX_TRIES; i++) {
		ret = record_session_base(base);
		if (ret)
			break;
		remove_stale(base);
		ret = make_dir(s, base);
		if (ret != -ENOENT)
			break;
	}
	if (ret) {
		s->dir[0] = 0;
		return record_error("%s: %s; record needs a directory there for its socket", base,
				    strerror(-ret));
	}
	snprintf(s->sock, sizeof(s->sock), "%.96s/sock", s->dir);
	ret = s->listen_fd = listen_at(s->sock);
	if (ret >= 0 && serve) {
		snprintf(s->control, sizeof(s->control), "%.96s/control", s->dir);
		ret = s->control_fd = listen_at(s->control);
	}
	if (ret < 0)
		ret = record_error("%s: %s", s->dir, strerror(-ret));
	else
		ret = 0;
	if (ret)
		record_session_close(s);
	return ret;
}

/* If dir was in a spare base, removes that base if the base is empty. */
static void remove_spare(const char *dir)
{
	char base[RECORD_BASE];
	int n = snprintf(base, sizeof(base), TMP "/patchbay-%u-", (unsigned)geteuid());
	const char *slash = strrchr(dir, '/');

	if (!strncmp(dir, base, (size_t)n) && slash - dir == n + 6) {
		snprintf(base, sizeof(base), "%.*s", n + 6, dir);
		rmdir(base);
	}
}

void record_session_close(struct record_session *s)
{
	if (s->listen_fd >= 0)
		close(s->listen_fd);
	if (s->control_fd >= 0)
		close(s->control_fd);
	s->listen_fd = s->control_fd = -1;
	if (s->dir[0]) {
		int fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0) {
			remove_files(fd);
			close(fd);
		}
		rmdir(s->dir);
		remove_spare(s->dir);
	}
	s->dir[0] = 0;
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	s->lock_fd = -1;
}

static bool is_ours(const char *var)
{
	return !strncmp(var, "LD_PRELOAD=", 11) || !strncmp(var, "PATCHBAY_SESSION=", 17);
}

/* If the program exe needs a library that must be preloaded before the agent, sets `first` to the
 * library's name. Otherwise sets `first` to "". */
static void first_of(const char *exe, char first[PB_FIRST_MAX])
{
	int fd = open(exe, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || !pb_first_library(fd, first))
		*first = 0;
	if (fd >= 0)
		close(fd);
}

char **record_session_environ(const struct record_session *s, const char *exe)
{
	char needed[PB_FIRST_MAX];
	const char *former = getenv("LD_PRELOAD"), *first = NULL;
	size_t n = 0, k = 0, text = strlen(s->agent) + (former ? 2 * strlen(former) : 0) + 256;
	size_t first_len = former ? pb_first_in_list(former, strlen(former), &first) : 0;
	char *p, **env;

	if (!first_len) {
		first_of(exe, needed);
		first = needed;
		first_len = strlen(needed);
	}
	while (environ[n])
		n++;
	env = malloc((n + 3) * sizeof(*env) + text);
	if (!env)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (!is_ours(environ[i]))
			env[k++] = environ[i];
	p = (char *)(env + n + 3);
	env[k++] = p;
	p += sprintf(p, "LD_PRELOAD=%.*s%s%s%s%s", (int)first_len, first, first_len ? ":" : "",
		     s->agent, former && *former ? ":" : "", former ? former : "") + 1;
	env[k++] = p;
	sprintf(p, "PATCHBAY_SESSION=%s", s->sock);
	env[k] = NULL;
	return env;
}
