/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Forks twice, without exec, and calls setsid. After the program has ended, the daemon continues,
 * starts threads, and writes its last line.
 * @status 4
 * @markers 300 daemon_main daemon_thread main
 */
#include <pthread.h>
#include <sys/wait.h>
#include "../hostile.h"

static KEEP void *daemon_thread(void *arg)
{
	int n;

	for (n = 0; n < 100; n++)
		marker_begin(n);
	return arg;
}

static KEEP void daemon_main(int parent_alive)
{
	pthread_t t;
	char c;
	int n;

	check(read(parent_alive, &c, 1) == 0);	/* the program has ended */
	check(!pthread_create(&t, NULL, daemon_thread, NULL));
	check(!pthread_join(t, NULL));
	for (n = 0; n < 100; n++)
		marker_begin(n);
	puts("the daemon ends");
}

int main(void)
{
	int alive[2], n;
	pid_t pid;

	check(!pipe(alive));
	pid = fork();
	check(pid >= 0);
	if (!pid) {
		setsid();
		pid = fork();
		check(pid >= 0);
		if (pid)
			_exit(0);
		close(alive[1]);
		daemon_main(alive[0]);
		return 0;
	}
	check(waitpid(pid, NULL, 0) == pid);
	for (n = 0; n < 100; n++)
		marker_begin(n);
	puts("the program ends");
	return 4;
}
