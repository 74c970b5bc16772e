/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A signal handler jumps out of eBPF programs again and again: pushing ROUNDS. Then two threads
 * call last(), and its eBPF program returns 0 in its place, or a bit for each operation that has
 * failed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#define KEEP __attribute__((noinline, noclone))

static sigjmp_buf back;

KEEP int often(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3 + (x >> 2);
}

KEEP int last(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x | 64;
}

static void on_alarm(int sig) { siglongjmp(back, 1); }

static void *call_last(void *arg)
{
	return (void *)(long)last(0);
}

int main(int argc, char **argv)
{
	/* the agent can't defer the signal, because SA_RESETHAND takes its handler away */
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = (int)SA_RESETHAND };
	int rounds = argc > 1 ? atoi(argv[1]) : 0;
	void *other = NULL;
	pthread_t thread;
	volatile int i;
	long own;

	often(3);	/* adds the key of the hash: an insertion that is left loses the element */
	for (i = 0; i < rounds; i++) {
		struct itimerval t = { { 0, 0 }, { 0, 50 + i % 97 } };

		sigaction(SIGALRM, &sa, NULL);
		if (sigsetjmp(back, 1))
			continue;
		setitimer(ITIMER_REAL, &t, NULL);
		for (;;)
			often(i);
	}
	often(i);	/* at the same place of the stack: the last jump is noticed */
	own = (long)call_last(NULL);
	if (pthread_create(&thread, NULL, call_last, NULL) || pthread_join(thread, &other))
		return 2;
	printf("failed: %lx %lx\n", own, (long)other);
	return own || other;
}
