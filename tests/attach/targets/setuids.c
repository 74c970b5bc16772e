/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls setuid() every millisecond. In each call, libc sends a signal to all threads and waits for
 * their answers. So if a thread blocked this signal, the program would hang. Ends when its input
 * ends.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *wait_only(void *arg)
{
	for (;;)
		pause();
}

int main(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	unsigned long n = 0;
	pthread_t t;

	pthread_create(&t, NULL, wait_only, NULL);
	printf("ready\n");
	fflush(stdout);
	/* without the pauses, no other thread would get the lock that setuid() takes */
	for (; poll(&input, 1, 1) == 0; n++)
		if (setuid(getuid()))
			abort();
	printf("%d changes\n", n > 0);
	return 0;
}
