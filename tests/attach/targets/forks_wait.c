/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Forks NUMBER children when a line comes. Prints their PIDs when all of them wait. Ends, with its
 * children, when its input ends.
 *
 *   forks_wait NUMBER            each child waits in vfork(), where its thread can't be stopped
 *   forks_wait NUMBER LIBRARY    each child loads the library, whose constructor waits
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

__attribute__((noipa)) static void wait_for_ever(void)
{
	for (;;)
		pause();
}

static void child(const char *library, int out)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (library)
		setenv("READY", (char[]){ (char)('0' + out), 0 }, 1);
	if (library && dlopen(library, RTLD_NOW))
		_exit(0);
	if (!vfork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(out, "x", 1) == 1)
			wait_for_ever();
		_exit(1);
	}
}

int main(int argc, char **argv)
{
	int nr = atoi(argv[1]), fds[2];
	char line[10];

	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin) || pipe(fds))
		return 1;
	for (int i = 0; i < nr; i++) {
		pid_t pid = fork();

		if (!pid) {
			child(argv[2], fds[1]);
			_exit(1);
		}
		printf("%d ", (int)pid);
	}
	for (int i = 0; i < nr; i++)
		if (read(fds[0], line, 1) != 1)
			return 1;
	printf("\n");
	fflush(stdout);
	return !fgets(line, sizeof(line), stdin) ? 0 : 1;
}
