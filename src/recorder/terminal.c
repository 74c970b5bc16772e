/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds out whether a process may write to the recorder's terminal, where its output and the
 * progress line would mix. */
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "recorder/terminal.h"

#define DESCRIPTORS 1000	/* at most this many descriptors are looked at; if there are more,
				 * the result is true */

/* True if both are the same terminal. /dev/tty (5:0) is each process's own terminal, so it may be
 * the recorder's terminal. */
static bool same_terminal(const struct stat *a, const struct stat *b)
{
	return S_ISCHR(a->st_mode) && (a->st_rdev == b->st_rdev || a->st_rdev == makedev(5, 0));
}

bool record_procs_have_terminal(pid_t pid, int fd)
{
	struct stat ours, st;
	char path[300];
	unsigned n = 0;
	bool found = false, none = true;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	if (!d || fstat(fd, &ours)) {
		if (d)
			closedir(d);
		return true;
	}
	for (struct dirent *e; !found && (e = readdir(d));) {
		none &= e->d_name[0] == '.';
		/* skip standard input: it may be open for writing, too, but programs only read from
		 * it */
		if (e->d_name[0] == '.' || (e->d_name[0] == '0' && !e->d_name[1]))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, e->d_name);
		found = n++ == DESCRIPTORS || (!stat(path, &st) && same_terminal(&st, &ours));
	}
	closedir(d);
	return found || none;
}
