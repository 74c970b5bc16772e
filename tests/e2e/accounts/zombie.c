/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Forks a child that continues after the program's end. With 'z' in argv[1], the child's main
 * thread exits. With 'd' in argv[1], the child isn't dumpable. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define CALLS 700ul

static volatile unsigned long sink;

__attribute__((noinline)) void leaf(unsigned long i)
{
	sink += i;
}

static void *call(void *arg)
{
	struct timespec t = { 0, 1000000 };

	for (unsigned long i = 0; i < CALLS; i++) {
		leaf(i);
		nanosleep(&t, NULL);
	}
	_exit(0);
	return arg;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "z";

	printf("calls %lu %lu\n", CALLS, CALLS);
	fflush(stdout);
	if (!fork()) {
		pthread_t t;

		if (strchr(mode, 'd'))
			prctl(PR_SET_DUMPABLE, 0);
		pthread_create(&t, NULL, call, NULL);
		if (strchr(mode, 'z'))
			pthread_exit(NULL);
		pause();
	}
	usleep(100000);
	return 0;
}
