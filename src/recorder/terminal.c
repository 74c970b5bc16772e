/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Other writers to our terminal: a program's output and the progress line would mix. */
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "recorder/terminal.h"

#define DESCRIPTORS 1000	/* that are looked at */

/* /dev/tty is whatever terminal the process has. */
static bool same_terminal(const struct stat *a, const struct stat *b)
{
	return S_ISCHR(a->st_mode) && (a->st_rdev == b->st_rdev || a->st_rdev == makedev(5, 0));
}

bool record_procs_have_terminal(pid_t pid, int fd)
{
	struct stat ours, st;
	char path[300];
	unsigned n = 0;
	bool found = false;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	if (!d || fstat(fd, &ours)) {
		if (d)
			closedir(d);
		return true;
	}
	for (struct dirent *e; !found && (e = readdir(d));) {
		/* its standard input may be open for writing, too, but is read */
		if (e->d_name[0] == '.' || (e->d_name[0] == '0' && !e->d_name[1]))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, e->d_name);
		found = n++ == DESCRIPTORS || (!stat(path, &st) && same_terminal(&st, &ours));
	}
	closedir(d);
	return found;
}
