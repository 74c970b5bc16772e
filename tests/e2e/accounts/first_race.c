/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Forks argv[1] children. In each child, all threads make their first traced calls at the same
 * time. One of these threads is the child's main thread, which has open calls from before the fork.
 * The exit status is 1 if a child was killed or computed a wrong result. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 12
#define ROUNDS 100L

static int arrived;

__attribute__((noinline)) long leaf(long i)
{
	__asm__ volatile("" : : "r"(i));
	return i + 1;
}

__attribute__((noinline)) long middle(long i)
{
	long r = leaf(i);

	return r + leaf(r);
}

__attribute__((noinline)) long outer(long i)
{
	long r = middle(i);

	return r + middle(r);
}

static void *call(void *arg)
{
	long *result = arg;

	__atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < THREADS)
		;
	for (long i = 0; i < ROUNDS; i++)
		*result += outer(i);
	return NULL;
}

static int child(void)
{
	pthread_t t[THREADS];
	long result[THREADS] = { 0 };
	int wrong = 0;

	for (int i = 1; i < THREADS; i++)
		pthread_create(&t[i], NULL, call, &result[i]);
	call(&result[0]);
	for (int i = 1; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 1; i < THREADS; i++)
		wrong |= result[i] != result[0];
	return wrong;
}

/* Four calls of this function are open while the children start. For the outer three calls, the
 * agent has already recorded the beginning (an ENTRY record), because each of these calls has made
 * a traced call. */
__attribute__((noinline)) long nested_leaf(int depth, long children)
{
	long wrong = 0;

	if (depth)
		return nested_leaf(depth - 1, children) + 0 * leaf(depth);
	for (long i = 0; i < children; i++) {
		int status = -1;
		pid_t pid = fork();

		if (!pid)
			_exit(child());
		waitpid(pid, &status, 0);
		wrong += status != 0;
	}
	return wrong;
}

int main(int argc, char **argv)
{
	long children = argc > 1 ? atol(argv[1]) : 60;
	long wrong = nested_leaf(3, children), calls = children * THREADS * ROUNDS * 7 + 4 + 3;

	printf("calls %ld %ld\n", calls, calls);
	return wrong != 0;
}
