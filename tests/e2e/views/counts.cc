/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that begin and end in many ways: by returns, exceptions, longjmp, threads, forks in deep
 * calls, and an exit in the middle of calls. The children of the forks return through the inherited
 * calls. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL __attribute__((noipa))
#define KEEP(x) __asm__ volatile("nopl 8(%%rax)" : "+r"(x))

static jmp_buf buf;
static unsigned lingers_ms;

extern "C" CALL int leaf(int n)
{
	KEEP(n);
	return n + 1;
}

extern "C" CALL int throws(int n)
{
	leaf(n);
	throw n;
}

extern "C" CALL int throws_at_once(int n)
{
	KEEP(n);
	throw n;
}

extern "C" CALL int jumps(int n)
{
	KEEP(n);
	longjmp(buf, n + 1);
}

/* This call and all calls around it return in the child, too. */
extern "C" CALL int forks(int depth)
{
	int status, ret = 0;
	pid_t pid;

	if (depth) {
		ret = forks(depth - 1) + leaf(depth);
		return ret;
	}
	fflush(stdout);
	pid = fork();
	if (pid)
		waitpid(pid, &status, 0);
	return leaf(0);
}

static void *thread(void *arg)
{
	long n = (long)arg;

	if (n % 2)
		pthread_setname_np(pthread_self(), "odd-thread");
	for (int i = 0; i < 100; i++)
		leaf(i);
	if (n == 3)
		usleep(lingers_ms * 1000);	/* gives the recorder time to read the thread's
						 * name */
	return NULL;
}

extern "C" CALL void ends_here(int n)
{
	leaf(n);
	_exit(0);
}

int main(int argc, char **argv)
{
	pthread_t t[4];

	lingers_ms = argc > 1 ? (unsigned)atoi(argv[1]) : 0;

	for (int i = 0; i < 10; i++) {
		try {
			i % 2 ? throws(i) : throws_at_once(i);
		} catch (int) {
			leaf(i);
		}
	}
	for (volatile int i = 0; i < 10; i = i + 1)
		if (!setjmp(buf))
			jumps(i);
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, thread, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	forks(10);
	forks(300);
	ends_here(1);
}
