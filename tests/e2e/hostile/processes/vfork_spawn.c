/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests vfork with _exit and with exec, posix_spawn, system and popen. A vfork child makes calls
 * while its parent's calls are open.
 * @flags -DNR=20
 * @quick -DNR=6
 * @markers 13*NR main/one_vfork main/one_spawn
 */
#include <spawn.h>
#include <sys/wait.h>
#include "../hostile.h"

extern char **environ;
static volatile int shared;

static KEEP int in_child(int n)
{
	shared = opaque(n);
	return n & 0x7f;
}

static KEEP int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		check(errno == EINTR);
	return status;
}

static KEEP void one_vfork(int n)
{
	char *argv[] = { "sh", "-c", "exit 7", NULL };
	pid_t pid = vfork();

	check(pid >= 0);
	if (!pid) {
		if (n % 10 == 9) {
			execv("/bin/sh", argv);
			_exit(126);
		}
		_exit(in_child(n));
	}
	marker_begin(n);
	if (n % 10 != 9)
		check_eq(shared, n);
	check_eq(WEXITSTATUS(wait_for(pid)), n % 10 == 9 ? 7 : n & 0x7f);
}

static KEEP void one_spawn(int n)
{
	char arg[32], line[32], *argv[] = { "sh", "-c", arg, NULL };
	pid_t pid;
	FILE *f;

	snprintf(arg, sizeof(arg), "exit %d", n);
	check(!posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ));
	check_eq(WEXITSTATUS(wait_for(pid)), n);
	if (n % 10 == 0) {
		check_eq(WEXITSTATUS(system(arg)), n);
		snprintf(arg, sizeof(arg), "echo %d", n);
		check(f = popen(arg, "r"));
		check(fgets(line, sizeof(line), f));
		check_eq(atoi(line), n);
		check_eq(pclose(f), 0);
	}
	marker_begin(n);
}

int main(void)
{
	int n;

	for (n = 0; n < 10 * NR; n++)
		one_vfork(n);
	for (n = 0; n < 3 * NR; n++)
		one_spawn(n);
	puts("200 vforks, 60 spawns");
	return 0;
}
