/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Forks a child every 20 ms. Each child loads and unloads a library again and again, for a moment.
 * The argument is the library. Ends when its input ends.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int load(const char *library)
{
	for (int i = 0; i < 50; i++) {
		void *handle = dlopen(library, RTLD_NOW);

		if (!handle || dlclose(handle))
			return 1;
		usleep(1000);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	int status, bad = 0;

	printf("ready\n");
	fflush(stdout);
	while (poll(&input, 1, 20) == 0) {
		if (!fork())
			_exit(load(argv[1]));
		while (waitpid(-1, &status, WNOHANG) > 0)
			bad |= status;
	}
	while (waitpid(-1, &status, 0) > 0)
		bad |= status;
	return bad != 0;
}
