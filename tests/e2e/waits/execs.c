/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints a line with the result of exec for each of many unusual files. Most of the files can't be
 * executed. run_waits makes the files in the current directory. */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void report(const char *what, pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		printf("%s: signal %d\n", what, WTERMSIG(status));
	else if (WEXITSTATUS(status) >= 200)
		printf("%s: %s\n", what, strerrorname_np(WEXITSTATUS(status) - 200));
	else
		printf("%s: runs, exit status %d\n", what, WEXITSTATUS(status));
	fflush(stdout);
}

static int failed(void)
{
	return errno < 55 ? 200 + errno : 255;
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (!pid)
		alarm(120);
	return pid;
}

static void by_path(const char *path)
{
	char *argv[] = { (char *)path, NULL };
	char what[300];
	pid_t pid = child();

	if (!pid) {
		execve(path, argv, environ);
		_exit(failed());
	}
	snprintf(what, sizeof(what), "execve %.200s", path);
	report(what, pid);
}

static void by_descriptor(const char *path, int flags)
{
	char *argv[] = { (char *)path, NULL };
	char what[300];
	pid_t pid = child();

	if (!pid) {
		int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);

		if (fd < 0)
			_exit(254);
		fexecve(fd, argv, environ);
		_exit(failed());
	}
	snprintf(what, sizeof(what), "fexecve %.200s, %#x", path, flags);
	report(what, pid);
}

static void at(const char *what, const char *path, char **argv, char **env, int flags)
{
	pid_t pid = child();

	if (!pid) {
		execveat(AT_FDCWD, path, argv, env, flags);
		_exit(failed());
	}
	report(what, pid);
}

int main(int argc, char **argv)
{
	static const char *const paths[] = {
		"", ".", "missing", "fifo", "directory", "/dev/null", "/dev/tty", "socket",
		"dangling", "loop", "link", "noexec", "text", "nosuchinterpreter",
		"fifointerpreter", "script", "executeonly", "empty", "onebyte", "hashbang",
		"truncated", "nested", "program", "program/x", "/dev/stdin", "32bit",
	};
	char *good[] = { "program", NULL };
	char long_path[5000];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		by_path(paths[i]);
	memset(long_path, 'a', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = 0;
	by_path(long_path);
	by_descriptor("program", O_RDONLY);
	by_descriptor("program", O_PATH);
	by_descriptor("directory", O_RDONLY);
	by_descriptor("fifo", O_RDONLY);
	by_descriptor("/dev/null", O_RDONLY);
	at("a link that isn't followed", "link", good, environ, AT_SYMLINK_NOFOLLOW);
	at("an empty path of the current directory", "", good, environ, AT_EMPTY_PATH);
	at("a bad path", (char *)16, good, environ, 0);
	at("a bad path that may be empty", (char *)16, good, environ, AT_EMPTY_PATH);
	at("NULL", NULL, good, environ, 0);
	at("no arguments", "program", NULL, environ, 0);
	at("no environment", "program", good, NULL, 0);
	at("bad arguments", "program", (char **)16, environ, 0);
	at("a bad environment", "program", good, (char **)16, 0);
	at("a bad string in the environment", "program", good,
	   (char *[]){ "A=1", (char *)16, NULL }, 0);
	at("bad flags", "program", good, environ, 0x8000);
	return 0;
}
