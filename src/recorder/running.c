/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads /proc/PID/exe and cmdline, and opens the process's files. The command line may hold any
 * bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder/proc.h"
#include "recorder/running.h"
#include "recorder/target.h"
#include "recorder/texts.h"

#define MAX_CMDLINE (1 << 20)

static size_t read_all(const char *path, char *to, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(to, 1, size, f) : 0;

	if (f)
		fclose(f);
	return n;
}

/* Splits the command line, whose arguments end with NUL. A process may have overwritten it. */
static char **split(char *text, size_t len)
{
	size_t nr = 0;

	for (size_t i = 0; i < len; i++)
		nr += !text[i];
	char **argv = calloc(nr + 2, sizeof(*argv));

	if (!argv)
		return NULL;
	nr = 0;
	for (size_t i = 0; i < len; i += strlen(text + i) + 1)
		argv[nr++] = text + i;
	return argv;
}

char **record_running_target(struct record_target *t, pid_t pid)
{
	char path[40], *text = malloc(MAX_CMDLINE + PATH_MAX);

	if (!text)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	ssize_t n = readlink(path, t->exe, sizeof(t->exe) - 1);
	if (n < 0) {
		const char *why = strerror(errno);

		if (errno == ENOENT || errno == ESRCH)
			why = "no such process, or a thread of the kernel";
		else if (errno == EACCES)
			why = "belongs to another user, or isn't dumpable; become root";
		record_error("%d: %s", (int)pid, why);
		free(text);
		return NULL;
	}
	t->exe[n] = 0;
	t->pid = pid;
	memcpy(t->path, t->exe, sizeof(t->path));
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	size_t len = read_all(path, text, MAX_CMDLINE);
	if (!len)
		len = (size_t)snprintf(text, PATH_MAX, "%s", t->exe);
	text[len] = 0;
	len += text[len - 1] != 0;
	char **argv = split(text, len);
	if (!argv)
		free(text);
	return argv;
}

int record_open_regular(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EACCES;
	}
	return fd;
}

int record_running_open(pid_t pid, const char *path)
{
	char full[PATH_MAX + 64], dir[RECORD_PROC_PATH];

	record_proc_path(pid, dir);
	snprintf(full, sizeof(full), "%s/%s/%s", dir, *path == '/' ? "root" : "cwd", path);
	int fd = record_open_regular(full);
	if (fd == -EACCES && *path == '/' && geteuid())
		fd = record_open_regular(path);
	return fd;
}

int record_running_open_exe(pid_t pid)
{
	char path[RECORD_PROC_PATH + 8], dir[RECORD_PROC_PATH];

	record_proc_path(pid, dir);
	snprintf(path, sizeof(path), "%s/exe", dir);
	return record_open_regular(path);
}
