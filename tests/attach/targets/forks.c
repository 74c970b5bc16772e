/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Forks again and again without libc. Each child calls setgid(), for which libc goes through the
 * list of threads that it knows. Then the child ends. If a child doesn't end within ten seconds,
 * says so and fails. Ends when its input ends.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void late(int sig)
{
	static const char text[] = "a child hangs\n";

	if (write(1, text, sizeof(text) - 1))
		_exit(1);
}

int main(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	unsigned long n = 0;

	signal(SIGALRM, late);
	printf("ready\n");
	fflush(stdout);
	for (; poll(&input, 1, 0) == 0; n++) {
		long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		int status;

		if (!pid)
			_exit(setgid(getgid()) ? 1 : 0);
		alarm(10);
		if (pid < 0 || waitpid((pid_t)pid, &status, 0) != pid || status)
			return 1;
		alarm(0);
	}
	printf("%d children\n", n > 0);
	return 0;
}
