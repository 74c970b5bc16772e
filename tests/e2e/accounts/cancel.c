/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Starts argv[1] threads, one after the other. Cancels each thread asynchronously while it makes
 * calls. If a thread is canceled before it has counted its last call in `calls`, this call is
 * missing in `calls`. So the program prints the least and the greatest possible number of calls. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile unsigned long calls;	/* only one thread at a time makes calls */

__attribute__((noinline)) long leaf(long i)
{
	__asm__ volatile("" : : "r"(i));
	return i + 1;
}

static void *spin(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;) {
		leaf(1);
		calls++;
	}
	return arg;
}

int main(int argc, char **argv)
{
	unsigned long most = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;

	for (unsigned long i = 0; i < most; i++) {
		pthread_t t;

		pthread_create(&t, NULL, spin, NULL);
		usleep(300 + (unsigned)rand() % 400);
		pthread_cancel(t);
		pthread_join(t, NULL);
	}
	printf("calls %lu %lu\n", calls, calls + most);
	return 0;
}
