/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program with two threads. The second thread waits for a futex without end. When the program's
 * input ends, its main thread executes /bin/true.
 *
 * With -DLIBRARY: a library whose constructor doesn't return.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

#ifdef LIBRARY
__attribute__((constructor)) static void stay(void)
{
	for (;;)
		pause();
}
#else
static sem_t never;

static void *wait_for_ever(void *arg)
{
	for (;;)
		sem_wait(&never);
	return arg;
}

int main(void)
{
	pthread_t t;
	char c;

	if (sem_init(&never, 0, 0) || pthread_create(&t, NULL, wait_for_ever, NULL))
		return 2;
	printf("ready\n");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	execl("/bin/true", "true", NULL);
	return 3;
}
#endif
