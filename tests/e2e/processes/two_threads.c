/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two threads: one waits, the other ends the program at the end of stdin. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(void)
{
	pthread_t t;
	char c;

	pthread_create(&t, NULL, wait_for_ever, NULL);
	puts("ready");
	fflush(stdout);
	return read(0, &c, 1) != 0;
}
