/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs argv[1] coroutines on a pool of stacks that the program doesn't report to the agent. Most
 * coroutines are abandoned half-way, with calls open. Later coroutines run on the abandoned stacks.
 * At the program's end, no calls are open. */
#include <stdio.h>
#include <stdlib.h>
#include "../switch_stack.h"

#define STACKS 64
#define SIZE 16384
#define APART (1 << 19)			/* distance of two stacks. It is large, because the engine
					 * can only guess where a stack ends */

static unsigned long calls;
static void *here, *there;		/* stack pointers of main and the coroutine */

__attribute__((noinline)) long leaf(long i)
{
	calls++;
	__asm__ volatile("" : : "r"(i));
	return i + 1;
}

__attribute__((noinline)) long nested_leaf(long depth)
{
	long r = depth;

	calls++;
	if (depth)
		r += leaf(nested_leaf(depth - 1));
	else
		SWITCH(&there, here);
	__asm__ volatile("" : "+r"(r));
	return r;
}

static long depth_of_next;

/* The first function on a stack. If the depth is less than 0, makes one call that returns at
 * once. */
__attribute__((noinline, used)) static void begin(void)
{
	if (depth_of_next < 0)
		leaf(0);
	else
		nested_leaf(depth_of_next);
	SWITCH(&there, here);
	abort();
}

/* Starts a coroutine. Returns when the coroutine yields. */
__attribute__((noinline)) void outer(char *stack, long depth)
{
	calls++;
	depth_of_next = depth;
	SWITCH(&here, stack_begin(stack + SIZE, begin));
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 100000;
	char *stacks[STACKS];

	srand(1);
	for (int i = 0; i < STACKS; i++)
		stacks[i] = malloc(APART);
	for (long i = 0; i < n; i++) {
		outer(stacks[rand() % STACKS], rand() % 6);
		if (i % 3 == 0)
			SWITCH(&here, there);	/* the coroutine runs to its end */
	}
	for (int i = 0; i < STACKS; i++)
		outer(stacks[i], -1);
	printf("calls %lu %lu\n", calls, calls);
	return 0;
}
