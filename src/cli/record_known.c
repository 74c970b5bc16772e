/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which modules a program will have, before it starts. For libraries the loader is
 * asked which ones it would take (ld.so --list), which is what ldd does.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/record.h"

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

/* "\tlibc.so.6 => /lib/libc.so.6 (0x...)" or "\t/lib64/ld.so (0x...)" */
static char *path_in_line(char *line)
{
	char *p = strstr(line, "=> "), *end;

	p = p ? p + 3 : line + strspn(line, " \t");
	end = strstr(p, " (0x");
	if (*p != '/' || !end)
		return NULL;
	*end = 0;
	return p;
}

static FILE *list_libraries(const struct record_target *t, const char *exe, pid_t *pid)
{
	char *argv[] = { (char *)t->loader, "--list", (char *)exe, NULL };
	posix_spawn_file_actions_t actions;
	int fds[2], ret;

	if (pipe2(fds, O_CLOEXEC))
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	ret = posix_spawn(pid, t->loader, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (ret) {
		close(fds[0]);
		return NULL;
	}
	return fdopen(fds[0], "r");
}

static void add_libraries(struct record_known *k, const struct record_target *t, const char *exe,
			  struct record_modules *m)
{
	char *line = NULL, *path, err[256];
	size_t cap = 0;
	pid_t pid;
	FILE *f = list_libraries(t, exe, &pid);

	if (!f)
		return;
	while (getline(&line, &cap, f) > 0 && k->nr <= RECORD_MAX_LIBRARIES) {
		struct record_module *mod = NULL;

		path = path_in_line(line);
		if (path)
			mod = analyse(m, path, err, sizeof(err));
		if (mod)
			k->list[k->nr++] = mod;
	}
	free(line);
	fclose(f);
	waitpid(pid, NULL, 0);
}

struct record_known *record_known_modules(const struct record_target *t, struct record_modules *m, bool libraries)
{
	struct record_known *k = calloc(1, sizeof(*k));
	char exe[PATH_MAX], err[256] = "";
	struct record_module *mod = NULL;

	if (k && realpath(t->exe, exe))
		mod = analyse(m, exe, err, sizeof(err));
	if (!mod) {
		record_error("%s: can't be analysed: %s", t->exe, *err ? err : strerror(errno));
		free(k);
		return NULL;
	}
	k->list[k->nr++] = mod;
	if (libraries)
		add_libraries(k, t, exe, m);
	return k;
}
