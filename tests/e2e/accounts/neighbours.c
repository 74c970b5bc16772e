/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs eight threads. Each thread has a second stack, whose bounds the engine must guess. The
 * second stacks are close together, so the engine takes them for one stack. Each thread switches to
 * its second stack and back argv[1] + 1 times. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include "../switch_stack.h"

#define THREADS 8
#define SIZE 16384

static char stacks[THREADS][SIZE] __attribute__((aligned(4096)));
static unsigned long calls;
static long rounds;
struct side {
	void *here, *there;
	unsigned long calls;
};
static __thread struct side *side;

__attribute__((noinline)) static void go_back(void)
{
	SWITCH(&side->there, side->here);
}

__attribute__((noinline)) long leaf(long i)
{
	if (++side->calls % 13 == 0)
		sched_yield();		/* other threads run while this thread's calls are open */
	__asm__ volatile("" : "+r"(i));
	return i + 1;
}

__attribute__((noinline)) long nested_leaf(long depth)
{
	long r = depth;

	side->calls++;
	if (depth)
		r += leaf(nested_leaf(depth - 1));
	else
		go_back();
	__asm__ volatile("" : "+r"(r));
	return r;
}

__attribute__((noinline)) long outer(long n)
{
	long r = 0;

	side->calls++;
	for (long i = 0; i < n; i++)
		r += nested_leaf(i % 5);
	return r;
}

__attribute__((used)) static void begin(void)
{
	outer(rounds);
	go_back();
	abort();
}

static void *thread(void *arg)
{
	struct side s = { .there = stack_begin((char *)arg + SIZE, begin) };

	side = &s;
	for (long i = 0; i < rounds + 1; i++) {
		if (i % 7 == 0)
			leaf(i);
		SWITCH(&s.here, s.there);
	}
	__atomic_fetch_add(&calls, s.calls, __ATOMIC_RELAXED);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	rounds = argc > 1 ? atol(argv[1]) : 10000;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, thread, stacks[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	printf("calls %lu %lu\n", calls, calls);
	return 0;
}
