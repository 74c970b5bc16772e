/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* handler_fork LIBRARY: stops the recorder, which is the parent process, and forks in a signal
 * handler while dlopen waits for the recorder. The child has no thread of the agent. Its dlopen
 * must return, too, and the library must work. The child also loads another library. */
#include <dlfcn.h>
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../supply/shared_ring.h"

#define HANDLER_US	50000	/* the signal's period; dlopen waits for 150 ms */
#define BEATS		15
#define CHILD_S		120

static pid_t child = -1;
static volatile sig_atomic_t loads;

/* Returns whether the agent's thread exists. While it exists, this thread waits for it. */
static int waits(void)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = 0;
	return strstr(text, "\nThreads:\t2\n") != NULL;
}

static void handler(int sig)
{
	if (loads && child < 0 && waits())
		child = fork();
}

static int call(const char *library)
{
	void *h;
	int (*fn)(int);

	loads = 1;
	h = dlopen(library, RTLD_NOW);
	loads = 0;
	if (!child)
		dlopen("libm.so.6", RTLD_NOW);
	fn = h ? (int (*)(int))dlsym(h, "plugin_user_call") : NULL;
	return fn ? fn(20) : -1;
}

int main(int argc, char **argv)
{
	struct itimerval at = { .it_value.tv_usec = HANDLER_US, .it_interval.tv_usec = HANDLER_US };
	int result, status = -1;
	pid_t recorder = getppid();
	const struct pb_ring *ring = shared_ring();

	if (!ring)
		errx(1, "the program isn't traced");
	signal(SIGALRM, handler);
	wait_for_heartbeats(ring, BEATS);
	kill(recorder, SIGSTOP);
	setitimer(ITIMER_REAL, &at, NULL);
	result = call(argv[1]);
	if (!child)
		_exit(result == 41 ? 0 : 1);
	kill(recorder, SIGCONT);
	if (child < 0)
		errx(1, "dlopen has ended before the signal came");
	for (int i = 0; i < CHILD_S * 100 && !waitpid(child, &status, WNOHANG); i++)
		usleep(10000);
	if (status == -1)
		kill(child, SIGKILL);
	printf("%d, child: status %#x\n", result, (unsigned)status);
	return 0;
}
