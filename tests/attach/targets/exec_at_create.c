/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Executes itself as soon as it has one thread more than it has made itself. So the exec ends the
 * main thread just after this thread has created the injector's thread. Ends when its input ends.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_THREADS 2

static char **args;

static void *watch(void *arg)
{
	struct stat st;

	/* the directory has two links, and one for each thread */
	do
		if (stat("/proc/self/task", &st))
			abort();
	while (st.st_nlink <= 2 + OWN_THREADS);
	execl("/proc/self/exe", args[0], (char *)NULL);
	abort();
	return arg;
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = 0 };
	pthread_t t;

	args = argv;
	pthread_create(&t, NULL, watch, NULL);
	printf("ready\n");
	fflush(stdout);
	while (poll(&input, 1, 1) == 0)
		continue;
	return 0;
}
