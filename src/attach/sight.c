/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * If the process finds the agent and the socket under their paths, it uses these paths. It doesn't
 * find them if it runs in a container or a chroot, or if its user may not read the agent or reach
 * the socket. Then the process gets descriptors of both files (hand_over.h), and needs only a /proc
 * in which it finds itself. The code here opens paths below /proc/PID/root, which leads where the
 * process's own paths lead.
 */
#include "attach/sight.h"
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define CAP_DAC_OVERRIDE	1
#define CAP_DAC_READ_SEARCH	2

/* --- namespaces ----------------------------------------------------------- */

static bool same_namespace(const struct attach_subject *s, const char *kind)
{
	char name[32], path[64], theirs[64], ours[64];
	ssize_t n;

	snprintf(name, sizeof(name), "ns/%s", kind);
	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	n = readlink(path, ours, sizeof(ours) - 1);
	if (n <= 0 || attach_proc_link(s, name, theirs, sizeof(theirs)))
		return true;	/* this can't be found out */
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

/* --- permissions ---------------------------------------------------------- */

struct user {
	unsigned uid, gid;	/* for access to files */
	const char *groups;	/* numbers with blanks between them, then a newline */
	uint64_t capabilities;
};

static void read_user(const char *status, struct user *u)
{
	const char *uid = record_proc_value(status, "Uid"), *gid = record_proc_value(status, "Gid");
	const char *cap = record_proc_value(status, "CapEff");

	u->uid = u->gid = UINT_MAX;
	if (uid)
		sscanf(uid, "%*u %*u %*u %u", &u->uid);
	if (gid)
		sscanf(gid, "%*u %*u %*u %u", &u->gid);
	u->groups = record_proc_value(status, "Groups");
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

/* Whether the user has this permission (4: read, 2: write, 1: search) by the mode of the file.
 * CAP_DAC_READ_SEARCH doesn't permit writing. */
static bool may(const struct user *u, const struct stat *st, unsigned need)
{
	unsigned mode = st->st_uid == u->uid ? st->st_mode >> 6 :
			in_group(u, st->st_gid) ? st->st_mode >> 3 : st->st_mode;
	unsigned capabilities = 1 << CAP_DAC_OVERRIDE |
				(need & 2 ? 0 : 1 << CAP_DAC_READ_SEARCH);

	return (mode & need) == need || u->capabilities & capabilities;
}

/* Checks each directory of a path, and whether the user has the permission `need` for the file. */
static bool may_access(const struct attach_subject *s, const struct user *u, char *path,
		       unsigned need)
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
	return stat(theirs, &st) || may(u, &st, need);
}

/* Whether the process's user can reach the file by its path. */
static bool reaches(const struct attach_subject *s, const struct user *u, const char *file,
		    unsigned need)
{
	char path[ATTACH_PATH];

	snprintf(path, sizeof(path), "%s", file);
	return same_file(s, file) && may_access(s, u, path, need);
}

/* --- paths or descriptors ------------------------------------------------- */

/* Returns the process's number in its own pid namespace: the last number in the line NSpid. */
static long own_number(const char *status)
{
	const char *ids = record_proc_value(status, "NSpid");
	long own = 0;

	for (char *end; ids && *ids && *ids != '\n'; ids = end) {
		long id = strtol(ids, &end, 10);

		if (end == ids)
			break;
		own = id;
	}
	return own;
}

/* Whether the process finds itself in its /proc: under /proc/self, and under the numbers that its
 * system calls return. A /proc of another pid namespace has other processes under these numbers, or
 * none. */
static bool has_proc(const struct attach_subject *s, const char *status)
{
	long own = own_number(status);
	char path[160], text[RECORD_STATUS_MAX];
	struct stat a, b;
	struct statfs fs;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)s->pid);
	if (stat(path, &a))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root/proc/%ld/ns/pid", (int)s->pid, own);
	if (stat(path, &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root/proc", (int)s->pid);
	if (statfs(path, &fs) || fs.f_type != PROC_SUPER_MAGIC)
		return false;
	snprintf(path, sizeof(path), "root/proc/%ld/status", own);
	return attach_proc_read(s, path, text, sizeof(text)) > 0 && own_number(text) == own;
}

/* Checks whether descriptors can replace the paths, and sets s->handed. `plain` has no
 * capabilities, because those of a user namespace don't count for files outside of it. */
static int check_handed(struct attach_subject *s, const struct user *u, const char *status)
{
	const struct user plain = { .uid = u->uid, .gid = u->gid, .groups = u->groups };
	struct stat st;

	if (s->children)
		return attach_say(s, ENOTSUP, "runs in a container or as another user, so its "
				  "children wouldn't find the agent; leave out --children");
	if (!has_proc(s, status))
		return attach_say(s, ENOTSUP, "runs in a container or in a chroot without a /proc "
				  "of its own, which the agent needs; mount /proc there, or start "
				  "the program with `patchbay record' there");
	if (!stat(s->agent, &st) && !may(same_namespace(s, "user") ? u : &plain, &st, 4))
		return attach_say(s, EACCES, "belongs to a user who may not read %s; install "
				  "Patchbay where all users can read it", s->agent);
	if (stat(s->session, &st))
		return attach_say(s, errno, "can't be attached to, because there is no socket %s: "
				  "%s", s->session, strerror(errno));
	if (st.st_uid != u->uid && geteuid())
		return attach_say(s, EPERM, "runs in a container as another user; run patchbay as "
				  "that user or as root");
	s->handed = true;
	return 0;
}

int attach_sight_check(struct attach_subject *s, const char *status)
{
	struct stat st;
	struct user u;

	if (s->agent[0] != '/' || s->session[0] != '/' || strlen(s->agent) >= ATTACH_PATH ||
	    strlen(s->session) >= ATTACH_PATH)
		return attach_say(s, EINVAL, "needs full paths of the agent and of the socket");
	if (stat(s->agent, &st))
		return attach_say(s, errno, "can't be attached to, because there is no agent %s: "
				  "%s", s->agent, strerror(errno));
	read_user(status, &u);
	s->uid = u.uid;
	if (same_namespace(s, "user") && reaches(s, &u, s->agent, 4) &&
	    (stat(s->session, &st) || reaches(s, &u, s->session, 2)))
		return 0;
	return check_handed(s, &u, status);
}
