/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens and analyses the files of a program's modules before the program is traced. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder/analyse_ahead.h"
#include "recorder/expected.h"
#include "recorder/modules.h"
#include "recorder/running.h"
#include "recorder/target.h"
#include "recorder/texts.h"

/* Analyses the file fd; if fd is -errno, it couldn't be opened. Closes fd. */
static struct record_module *analyse(struct record_modules *m, int fd, const char *path, char *err,
				     size_t errlen)
{
	struct record_module *mod = NULL;

	if (fd < 0) {
		snprintf(err, errlen, "%s", strerror(-fd));
	} else {
		mod = record_module_get(m, fd, path, err, errlen);
		close(fd);
	}
	return mod;
}

static int open_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

const struct record_module *record_known_file(struct record_modules *m, const char *path, char *err,
					      size_t errlen)
{
	char full[PATH_MAX];

	if (realpath(path, full))
		return analyse(m, open_path(full), full, err, errlen);
	snprintf(err, errlen, "%s", strerror(errno));
	return NULL;
}

static struct record_module *analyse_exe(const struct record_target *t, struct record_modules *m,
					 char *err, size_t errlen)
{
	char exe[PATH_MAX];

	if (t->pid)
		return analyse(m, record_running_open_exe(t->pid), t->exe, err, errlen);
	if (realpath(t->exe, exe))
		return analyse(m, open_path(exe), exe, err, errlen);
	snprintf(err, errlen, "%s", strerror(errno));
	return NULL;
}

static struct record_module *analyse_library(const struct record_target *t,
					     struct record_modules *m, const char *path)
{
	char err[256];
	int fd = t->pid ? record_running_open_library(t, path, NULL) : open_path(path);

	return analyse(m, fd, path, err, sizeof(err));
}

struct record_known *record_known_modules(const struct record_target *t, struct record_modules *m,
					  bool libraries)
{
	struct record_known *k = calloc(1, sizeof(*k));
	char err[256] = "out of memory";
	struct record_module *mod = k ? analyse_exe(t, m, err, sizeof(err)) : NULL;
	const char *path;

	if (!mod) {
		record_error("%s: can't be analysed: %s", t->exe, err);
		free(k);
		return NULL;
	}
	k->list[k->nr++] = mod;
	for (unsigned i = 1; libraries && (path = record_ahead_path(m->ahead, i)); i++)
		if (k->nr <= RECORD_MAX_LIBRARIES && (mod = analyse_library(t, m, path)))
			k->list[k->nr++] = mod;
	return k;
}
