/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent is loaded by its path, so the process must find the same file there. It doesn't if it
 * runs in a container or a chroot, or if its user may not read the file. All files are looked at
 * through /proc/PID/root, which leads where the process's own paths lead.
 *
 * All answers about "is it the same file" come from this file. Handing over a descriptor instead
 * of a path would need no other check than those of the namespaces.
 */
#include "attach/sight.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CAP_DAC_OVERRIDE	1
#define CAP_DAC_READ_SEARCH	2
#define CONTAINERS "run patchbay in the container, or start the program with `patchbay record'"

/* --- namespaces ----------------------------------------------------------- */

static bool same_namespace(const struct attach_subject *s, const char *kind)
{
	char name[32], path[64], theirs[64], ours[64];
	ssize_t n;

	snprintf(name, sizeof(name), "ns/%s", kind);
	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	n = readlink(path, ours, sizeof(ours) - 1);
	if (n <= 0 || attach_proc_link(s, name, theirs, sizeof(theirs)))
		return true;	/* nobody knows */
	ours[n] = 0;
	return !strcmp(ours, theirs);
}

static bool same_file(const struct attach_subject *s, const char *path)
{
	char theirs[ATTACH_PATH + 64];
	struct stat a, b;

	snprintf(theirs, sizeof(theirs), "/proc/%d/root%s", (int)s->pid, path);
	return !stat(path, &a) && !stat(theirs, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int say_hidden(struct attach_subject *s, const char *path)
{
	char root[ATTACH_PATH];

	if (!same_namespace(s, "mnt"))
		return attach_say(s, ENOTSUP, "runs in a container or with private mounts, where "
				  "it doesn't see %s; " CONTAINERS, path);
	if (!attach_proc_link(s, "root", root, sizeof(root)) && strcmp(root, "/"))
		return attach_say(s, ENOTSUP, "runs in a chroot (%s), where it doesn't see %s; "
				  "start the program with `patchbay record' in the chroot", root,
				  path);
	return attach_say(s, ENOENT, "doesn't see %s", path);
}

/* --- permissions ---------------------------------------------------------- */

struct user {
	unsigned uid, gid;	/* for access to files */
	const char *groups;	/* numbers with blanks between them, then a newline */
	uint64_t capabilities;
};

static void read_user(const char *status, struct user *u)
{
	const char *uid = attach_proc_value(status, "Uid"), *gid = attach_proc_value(status, "Gid");
	const char *cap = attach_proc_value(status, "CapEff");

	u->uid = u->gid = UINT_MAX;
	if (uid)
		sscanf(uid, "%*u %*u %*u %u", &u->uid);
	if (gid)
		sscanf(gid, "%*u %*u %*u %u", &u->gid);
	u->groups = attach_proc_value(status, "Groups");
	u->capabilities = cap ? strtoull(cap, NULL, 16) : 0;
}

static bool in_group(const struct user *u, unsigned gid)
{
	const char *p = u->groups;
	char *end;

	if (u->gid == gid)
		return true;
	while (p && *p && *p != '\n') {
		unsigned long g = strtoul(p, &end, 10);

		if (end == p)
			break;
		if (g == gid)
			return true;
		p = end + strspn(end, " ");
	}
	return false;
}

/* Whether the user has this permission (4: read, 1: search) by the mode of the file. */
static bool may(const struct user *u, const struct stat *st, unsigned need)
{
	unsigned mode = st->st_uid == u->uid ? st->st_mode >> 6 :
			in_group(u, st->st_gid) ? st->st_mode >> 3 : st->st_mode;

	return (mode & need) == need ||
	       u->capabilities & (1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH);
}

/* Checks each directory of a path, and the file. On failure, `path` is what can't be accessed. */
static bool may_read(const struct attach_subject *s, const struct user *u, char *path)
{
	char theirs[ATTACH_PATH + 64];
	struct stat st;

	for (char *slash = path; slash; slash = strchr(slash + 1, '/')) {
		char kept = slash[slash == path];

		slash[slash == path] = 0;
		snprintf(theirs, sizeof(theirs), "/proc/%d/root%s", (int)s->pid, path);
		if (!stat(theirs, &st) && !may(u, &st, 1))
			return false;
		slash[slash == path] = kept;
	}
	snprintf(theirs, sizeof(theirs), "/proc/%d/root%s", (int)s->pid, path);
	return stat(theirs, &st) || may(u, &st, 4);
}

int attach_sight_check(struct attach_subject *s, const char *status)
{
	char path[ATTACH_PATH];
	struct stat st;
	struct user u;

	if (s->agent[0] != '/' || s->session[0] != '/' || strlen(s->agent) >= sizeof(path) ||
	    strlen(s->session) >= sizeof(path))
		return attach_say(s, EINVAL, "needs full paths of the agent and of the socket");
	if (stat(s->agent, &st))
		return attach_say(s, errno, "can't be attached, because there is no agent %s: %s",
				  s->agent, strerror(errno));
	if (!same_namespace(s, "user"))
		return attach_say(s, ENOTSUP, "runs in a container (another user namespace); "
				  CONTAINERS);
	if (!same_namespace(s, "pid"))
		return attach_say(s, ENOTSUP, "runs in a container (another pid namespace); "
				  CONTAINERS);
	if (!same_file(s, s->agent))
		return say_hidden(s, s->agent);
	if (!stat(s->session, &st) && !same_file(s, s->session))
		return say_hidden(s, s->session);
	read_user(status, &u);
	snprintf(path, sizeof(path), "%s", s->agent);
	if (!may_read(s, &u, path))
		return attach_say(s, EACCES, "belongs to a user who may not read %s; install "
				  "Patchbay where all users can read it", path);
	return 0;
}
