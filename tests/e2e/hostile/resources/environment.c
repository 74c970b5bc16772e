/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tracer must not change the environment that the program sees: environ, getenv, main's third
 * argument, /proc/self/environ. The same holds for the environment of children. The program makes
 * children by fork, vfork and posix_spawn.
 * @markers 10 main
 * @timeout 20
 */
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include "../hostile.h"

extern char **environ;

static KEEP void check_one(const char *where, const char *v)
{
	if (!strncmp(v, "LD_PRELOAD=", 11) || strstr(v, "PATCHBAY") || strstr(v, "patchbay.so"))
		die("%s shows %s", where, v);
}

static KEEP void show(const char *who, char **env, int print)
{
	static char buf[1 << 20];
	int fd = open("/proc/self/environ", O_RDONLY), i, n = 0;
	ssize_t len = read(fd, buf, sizeof(buf) - 1), at;

	check(len > 0);
	close(fd);
	buf[len] = 0;
	for (at = 0; at < len; at += strlen(buf + at) + 1) {
		check_one("/proc/self/environ", buf + at);
		n += buf[at] != 0;
	}
	for (i = 0; env[i]; i++) {
		check_one("environ", env[i]);
		if (print)
			printf("%s: %s\n", who, env[i]);
	}
	if (n != i)
		die("%s: /proc/self/environ has %d strings, environ %d", who, n, i);
	check(!getenv("LD_PRELOAD"));
	fflush(stdout);
}

int main(int argc, char **argv, char **envp)
{
	char *const child_argv[] = { argv[0], (char *)"child", NULL };
	char *own[] = { (char *)"OWN=1", (char *)"TWO=2", NULL };
	pid_t pid;
	int status, i;

	if (argc > 1) {
		show("child", environ, 1);
		return 0;
	}
	check(envp == environ);
	show("parent", environ, 1);
	check(!setenv("ADDED", "later", 1));
	for (i = 0; i < 4; i++) {
		switch (i) {
		case 0:
			if (!(pid = fork())) {
				execv("/proc/self/exe", child_argv);
				_exit(1);
			}
			break;
		case 1:
			if (!(pid = vfork())) {
				execve("/proc/self/exe", child_argv, own);
				_exit(1);
			}
			break;
		case 2:
			check(!posix_spawn(&pid, "/proc/self/exe", NULL, NULL, child_argv,
					   environ));
			break;
		default:
			if (!(pid = fork())) {
				clearenv();
				setenv("ONLY", "me", 1);
				execvp("/proc/self/exe", child_argv);
				_exit(1);
			}
		}
		check(waitpid(pid, &status, 0) == pid && !status);
	}
	for (i = 0; i < 10; i++)
		marker_begin(i);
	return 0;
}
