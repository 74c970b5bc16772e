/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread calls abort(). SIGABRT runs its handler once, and after that kills the program.
 * @status -6
 * @markers 11 main on_abort
 */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include "../hostile.h"

static KEEP void on_abort(int sig)
{
	marker_begin(sig);
	check(write(1, "aborting\n", 9) == 9);
}
static KEEP void *thread_main(void *arg) { abort(); }

int main(void)
{
	struct rlimit none = { 0, 0 };
	pthread_t t;
	int n;

	setrlimit(RLIMIT_CORE, &none);
	signal(SIGABRT, on_abort);
	for (n = 0; n < 10; n++)
		marker_begin(n);
	pthread_create(&t, NULL, thread_main, NULL);
	pthread_join(t, NULL);
	return 0;
}
