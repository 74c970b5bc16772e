/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The main thread computes, creates a thread, waits for the thread's end, and so on. Ends when the
 * file that the argument names has been removed.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile double result = 1;

static void compute(void)
{
	for (int i = 0; i < 30000; i++)
		result = result * 1.0000001 + 1.0 / (result + i);
}

static void *nothing(void *arg) { return arg; }

int main(int argc, char **argv)
{
	unsigned long n;
	pthread_t t;

	printf("ready\n");
	fflush(stdout);
	for (n = 0; !access(argv[1], F_OK); n++) {
		compute();
		if (pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL))
			exit(1);
	}
	printf("created %d\n", n > 0);
	return 0;
}
