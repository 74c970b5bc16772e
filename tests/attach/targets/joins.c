/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Creates threads one after the other, and joins each of them. A thread lives for less than ten
 * milliseconds, and is inside libc all that time. So a thread can be borrowed only while it waits
 * in pthread_join(). Ends when the argument, a file, exists no longer.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char memory[1 << 20];

static void *fill(void *arg)
{
	for (int i = 0; i < 4; i++)
		memset(memory, (int)(intptr_t)arg, sizeof(memory));
	return arg;
}

int main(int argc, char **argv)
{
	intptr_t n = 0, wrong = 0;

	printf("ready\n");
	fflush(stdout);
	while (!access(argv[1], F_OK)) {
		pthread_t t;
		void *result;

		if (pthread_create(&t, NULL, fill, (void *)++n))
			return 1;
		pthread_join(t, &result);
		wrong += result != (void *)n;
	}
	printf("wrong %d\n", (int)wrong);
	return 0;
}
