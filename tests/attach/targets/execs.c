/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Executes itself again and again, from a thread that isn't the main thread. Each exec ends the
 * main thread and a thread that only waits. Between two execs all threads wait in short sleeps. The
 * argument is the count of images so far. Ends when its input ends.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char **args;

static void *exec_again(void *arg)
{
	char number[16];

	usleep(1000 * (unsigned)(rand() % 8));
	snprintf(number, sizeof(number), "%d", atoi(args[1]) + 1);
	execl("/proc/self/exe", args[0], number, (char *)NULL);
	return NULL;
}

static void *nap(void *arg)
{
	for (;;)
		usleep(500);
	return arg;
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = 0 };
	pthread_t t;

	args = argv;
	if (argc < 2)
		return 2;
	srand((unsigned)atoi(argv[1]));
	if (poll(&input, 1, 0) == 1 && input.revents & POLLHUP) {
		printf("%s images\n", argv[1]);
		return 0;
	}
	pthread_create(&t, NULL, nap, NULL);
	pthread_create(&t, NULL, exec_again, NULL);
	nap(NULL);
}
