/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `run_returns notrace` traces this program with -N hidden -N jumping. Calls of these two
 * functions, and calls below them, aren't recorded. Prints how many calls of outer(), leaf() and
 * tail() must be recorded.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#define KEEP __attribute__((noipa))

static jmp_buf env;

KEEP long leaf(long i)
{
	__asm__ volatile("" : : "r"(i));
	return i + 1;
}

KEEP long hidden(long depth)
{
	return depth ? hidden(depth - 1) + leaf(depth) : leaf(0) + 1;
}

KEEP long jumping(long i)
{
	if (leaf(i) > 0)
		longjmp(env, 1);
	return 1;
}

/* Ends by a tail call. */
KEEP long tail(long i)
{
	return hidden(i);
}

KEEP long outer(long i)
{
	return leaf(i) + hidden(i) + leaf(i) + tail(i % 3) + leaf(i);
}

int main(int argc, char **argv)
{
	volatile long n = atol(argv[1]), i, sum = 0;

	for (i = 0; i < n; i++) {
		sum += outer(i % 3 ? i % 7 : i % 400);
		if (!setjmp(env))
			sum += jumping(i);
		sum += leaf(i);
	}
	printf("outer %ld\nleaf %ld\ntail %ld\n", n, 4 * n, n);
	return sum == 42;
}
