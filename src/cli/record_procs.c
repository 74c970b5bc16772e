/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which processes are traced: those that map the ring. The kernel says it
 * exactly, through fork and exec and whatever the agents could tell us or not.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cli/record.h"

/* Kernel text files hold no more than this of one entry; mappings of the ring
 * are found by their line's "/memfd:patchbay-ring" and then by inode. */
bool record_procs_alive(const struct record_ring *r, pid_t pid)
{
	char path[40], *line = NULL;
	size_t cap = 0;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && getline(&line, &cap, f) > 0) {
		unsigned major, minor;
		unsigned long ino;

		if (strstr(line, "/memfd:patchbay-ring") &&
		    sscanf(line, "%*s %*s %*s %x:%x %lu", &major, &minor, &ino) == 3)
			found = ino == r->ino && makedev(major, minor) == r->dev;
	}
	free(line);
	fclose(f);
	return found;
}

/* "NSpid:\t17\t1": more than one number. */
static bool in_own_namespace(pid_t pid)
{
	char path[40], line[256];
	bool nested = false;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "NSpid:", 6)) {
			nested = strchr(line + 7, '\t') != NULL;
			break;
		}
	fclose(f);
	return nested;
}

static FILE *proc_file(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fopen(path, "re");
}

static bool is_empty(pid_t pid, const char *name)
{
	FILE *f = proc_file(pid, name);
	bool empty = f && getc(f) == EOF;

	if (f)
		fclose(f);
	return empty;
}

/* Whether a process' first environment has the line: the agent takes it out of
 * there when it has mapped the ring. While exec makes the new image there are no
 * arguments and no environment yet: that may be one. */
static bool is_starting(pid_t pid, const char *want)
{
	FILE *f = proc_file(pid, "environ");
	bool found = false, any = false;
	char *var = NULL;
	size_t cap = 0;

	if (!f)
		return false;
	while (!found && getdelim(&var, &cap, 0, f) > 0) {
		any = true;
		found = !strcmp(var, want);
	}
	free(var);
	fclose(f);
	return found || (!any && is_empty(pid, "cmdline") && !is_empty(pid, "maps"));
}

bool record_procs_starting(const struct record_session *s)
{
	char want[sizeof(s->sock) + 20];
	DIR *d = opendir("/proc");
	bool found = false;

	if (!d)
		return false;
	snprintf(want, sizeof(want), "PATCHBAY_SESSION=%s", s->sock);
	for (struct dirent *e; !found && (e = readdir(d));) {
		pid_t pid = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;

		found = pid > 0 && pid != getpid() && is_starting(pid, want);
	}
	closedir(d);
	return found;
}

unsigned record_procs_scan(const struct record_ring *r, pid_t except, pid_t *pids, unsigned max,
			   bool *nested)
{
	DIR *d = opendir("/proc");
	unsigned n = 0;

	if (nested)
		*nested = false;
	if (!d)
		return 0;
	for (struct dirent *e; n < max && (e = readdir(d));) {
		pid_t pid = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;

		if (pid <= 0 || pid == except || pid == getpid() || !record_procs_alive(r, pid))
			continue;
		pids[n++] = pid;
		if (nested && in_own_namespace(pid))
			*nested = true;
	}
	closedir(d);
	return n;
}

void record_read_comm(pid_t pid, pid_t tid, char *comm)
{
	char path[64], buf[RECORD_COMM + 1];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t n = read(fd, buf, RECORD_COMM);
	close(fd);
	if (n <= 1)
		return;
	buf[n - 1] = 0;		/* its newline */
	memcpy(comm, buf, (size_t)n);
}
