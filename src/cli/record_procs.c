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
