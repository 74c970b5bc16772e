/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread forks while other threads run. The child returns through the calls that were open at the
 * fork. Then it starts a thread and ends.
 * @flags -DNR=50
 * @quick -DNR=15
 * @markers 6*NR fork_deep child_thread
 * @timeout 40
 */
#include <pthread.h>
#include <sys/wait.h>
#include "../hostile.h"

static volatile int stop;

static KEEP void *child_thread(void *arg)
{
	marker_begin(3);
	return arg;
}

static KEEP long work(long x) { return opaque(x) * 2654435761u; }

static KEEP void *busy_main(void *arg)
{
	long x = 1;

	while (!stop)
		x = work(x);
	return (void *)x;
}

/* At every level of the recursion, returns the child's pid in the parent and 0 in the child. */
static KEEP pid_t fork_deep(int depth)
{
	pid_t pid;

	if (!depth) {
		pid = fork();
		check(pid >= 0);
		return pid;
	}
	pid = opaque(fork_deep(depth - 1));
	if (depth == 4)
		marker_begin(pid == 0);
	return pid;
}

static KEEP void *forker_main(void *arg)
{
	int i, status;

	for (i = 0; i < NR; i++) {
		pid_t pid = fork_deep(5);

		if (!pid) {
			pthread_t t;
			void *r;

			check(!pthread_create(&t, NULL, child_thread, (void *)5));
			check(!pthread_join(t, &r));
			check(r == (void *)5);
			_exit(40);
		}
		check(waitpid(pid, &status, 0) == pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 40)
			die("child %d ended with %#x", i, status);
	}
	return NULL;
}

int main(void)
{
	pthread_t busy[2], forker[2];
	int i;

	for (i = 0; i < 2; i++)
		check(!pthread_create(&busy[i], NULL, busy_main, NULL));
	for (i = 0; i < 2; i++)
		check(!pthread_create(&forker[i], NULL, forker_main, NULL));
	for (i = 0; i < 2; i++)
		check(!pthread_join(forker[i], NULL));
	stop = 1;
	for (i = 0; i < 2; i++)
		check(!pthread_join(busy[i], NULL));
	puts("100 forks from threads");
	return 0;
}
