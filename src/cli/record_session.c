/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The session's directory, BASE/PID-XXXXXX: the socket that agents look for,
 * and with --serve the one for `patchbay control`. Nobody else may enter it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/record.h"

#ifndef PB_LIBDIR
#define PB_LIBDIR "/usr/local/lib"
#endif
#define AGENT_NAME "libpatchbay.so.0"

static int make_private(const char *dir)
{
	struct stat st;

	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	if (lstat(dir, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	/* In /tmp anyone may have been there first. */
	if (st.st_uid != geteuid() || st.st_mode & 077)
		return -EPERM;
	return 0;
}

int record_session_base(char *base, size_t len)
{
	const char *run = getenv("XDG_RUNTIME_DIR");

	/* a socket's path has 108 bytes; "/PID-XXXXXX/control" needs 32 of them */
	if (run && *run == '/' && strlen(run) < 60) {
		snprintf(base, len, "%s/patchbay", run);
		if (!make_private(base))
			return 0;
	}
	snprintf(base, len, "/tmp/patchbay-%u", (unsigned)geteuid());
	return make_private(base);
}

static void remove_session(const char *dir)
{
	static const char *const names[] = { "sock", "control", PB_MISSED_FILE, AGENT_NAME };
	char path[160];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

/* Recorders that were killed leave theirs; the directory names its owner. */
static void remove_stale(const char *base)
{
	DIR *d = opendir(base);

	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		char dir[96];
		int pid = atoi(e->d_name);

		if (pid > 0 && kill(pid, 0) && errno == ESRCH &&
		    (size_t)snprintf(dir, sizeof(dir), "%s/%s", base, e->d_name) < sizeof(dir))
			remove_session(dir);
	}
	closedir(d);
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

/* Beside the program in a build directory, else where it was installed. The
 * loader separates LD_PRELOAD at blanks and colons: such a path goes through a
 * link in the session's directory. */
int record_session_find_agent(struct record_session *s)
{
	char exe[PATH_MAX], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	exe[n > 0 ? n : 0] = 0;
	slash = strrchr(exe, '/');
	snprintf(path, sizeof(path), "%.*s/%s", slash ? (int)(slash - exe) : 0, exe, AGENT_NAME);
	if (access(path, R_OK))
		snprintf(path, sizeof(path), "%s/%s", PB_LIBDIR, AGENT_NAME);
	if (access(path, R_OK))
		return record_error("%s: %s; is Patchbay installed completely?", path, strerror(errno));
	if (strpbrk(path, " :\t\n")) {
		snprintf(s->agent, sizeof(s->agent), "%s/%s", s->dir, AGENT_NAME);
		if (symlink(path, s->agent))
			return record_error("%s: %s", s->agent, strerror(errno));
	} else {
		memcpy(s->agent, path, sizeof(path));
	}
	return 0;
}

int record_session_open(struct record_session *s, bool serve)
{
	char base[72];
	int ret = record_session_base(base, sizeof(base));

	*s = (struct record_session){ .listen_fd = -1, .control_fd = -1 };
	if (ret)
		return record_error("%s: %s", base, ret == -EPERM ?
				    "belongs to someone else, or is open to others" : strerror(-ret));
	remove_stale(base);
	snprintf(s->dir, sizeof(s->dir), "%s/%d-XXXXXX", base, (int)getpid());
	if (!mkdtemp(s->dir)) {
		ret = record_error("%s: %s", s->dir, strerror(errno));
		s->dir[0] = 0;
		return ret;
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

void record_session_close(struct record_session *s)
{
	if (s->listen_fd >= 0)
		close(s->listen_fd);
	if (s->control_fd >= 0)
		close(s->control_fd);
	s->listen_fd = s->control_fd = -1;
	if (s->dir[0])
		remove_session(s->dir);
	s->dir[0] = 0;
}

static bool is_ours(const char *var)
{
	return !strncmp(var, "LD_PRELOAD=", 11) || !strncmp(var, "PATCHBAY_SESSION=", 17);
}

char **record_session_environ(const struct record_session *s)
{
	const char *former = getenv("LD_PRELOAD");
	size_t n = 0, k = 0, text = strlen(s->agent) + (former ? strlen(former) : 0) + 256;
	char *p, **env;

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
	p += sprintf(p, "LD_PRELOAD=%s%s%s", s->agent, former && *former ? ":" : "",
		     former ? former : "") + 1;
	env[k++] = p;
	sprintf(p, "PATCHBAY_SESSION=%s", s->sock);
	env[k] = NULL;
	return env;
}
