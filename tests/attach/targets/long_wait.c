/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waits for a long time in one system call, whose name is the argument, with a time-out. SIGUSR1
 * ends the wait. The program prints whether anything else has ended it. It has one thread.
 */
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LONG_S 1000

static volatile sig_atomic_t signals;

static void count(int sig)
{
	signals++;
}

static int wait_in(const char *name)
{
	struct timespec t = { LONG_S, 0 }, end;
	static sem_t sem;

	if (!strcmp(name, "poll"))
		return poll(NULL, 0, LONG_S * 1000);
	if (!strcmp(name, "nanosleep"))
		return nanosleep(&t, NULL);
	sem_init(&sem, 0, 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += LONG_S;
	return sem_timedwait(&sem, &end);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = count };

	sigaction(SIGUSR1, &sa, NULL);
	printf("ready\n");
	fflush(stdout);
	int ret = wait_in(argv[1]);

	printf("%s\n", ret == -1 && errno == EINTR && signals == 1 ? "signal" : "ended early");
	return 0;
}
