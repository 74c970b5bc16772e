/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the modules that a program will load, before the program starts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder/analyse_ahead.h"
#include "recorder/expected.h"
#include "recorder/modules.h"
#include "recorder/target.h"
#include "recorder/texts.h"

static struct record_module *analyse(struct record_modules *m, const char *path, char *err,
				     size_t errlen)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct record_module *mod = NULL;

	if (fd < 0) {
		snprintf(err, errlen, "%s", strerror(errno));
	} else {
		mod = record_module_get(m, fd, path, err, errlen);
		close(fd);
	}
	return mod;
}

const struct record_module *record_known_file(struct record_modules *m, const char *path, char *err,
					      size_t errlen)
{
	char full[PATH_MAX];

	if (realpath(path, full))
		return analyse(m, full, err, errlen);
	snprintf(err, errlen, "%s", strerror(errno));
	return NULL;
}

struct record_known *record_known_modules(const struct record_target *t, struct record_modules *m,
					  bool libraries)
{
	struct record_known *k = calloc(1, sizeof(*k));
	char exe[PATH_MAX], err[256] = "";
	struct record_module *mod = NULL;
	const char *path;

	if (k && realpath(t->exe, exe))
		mod = analyse(m, exe, err, sizeof(err));
	if (!mod) {
		record_error("%s: can't be analysed: %s", t->exe, *err ? err : strerror(errno));
		free(k);
		return NULL;
	}
	k->list[k->nr++] = mod;
	for (unsigned i = 1; libraries && (path = record_ahead_path(m->ahead, i)); i++)
		if (k->nr <= RECORD_MAX_LIBRARIES && (mod = analyse(m, path, err, sizeof(err))))
			k->list[k->nr++] = mod;
	return k;
}
