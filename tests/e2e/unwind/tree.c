/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tree TREES: makes calls of many shapes below run(), for a profiler to unwind. A tree is 46 calls.
 * Prints the time (CLOCK_MONOTONIC, seconds) at which the calls begin, and the time at which they
 * end. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N __attribute__((noinline, noclone))

volatile long sink;

N long leaf(long x)
{
	sink += x;
	return sink ^ x;
}

N long two(long x)
{
	long a = leaf(x);

	return a + leaf(x + a);
}

/* saves registers at its entry and restores them at its exit */
N long saves(long a, long b, long c)
{
	long x = two(a), y = two(b);

	return x * y + c + two(x);
}

N long deep(long n)
{
	return n ? deep(n - 1) + leaf(n) : saves(n, 2, 3);
}

N long big(long n)
{
	volatile char buf[200];

	buf[n & 127] = (char)n;
	return leaf(n) + buf[n & 63];
}

/* has a frame whose size is only known at run time */
N long sized(long n)
{
	volatile char buf[n + 16];

	buf[n] = (char)n;
	return leaf(buf[n]);
}

N long tail(long n)
{
	return leaf(n + 1);
}

/* has a loop that begins at the function's entry */
N long loops(long n)
{
	long s = 0;

	do
		s += tail(n) + big(n) + sized(n);
	while (--n);
	return s;
}

N long run(long trees)
{
	long s = 0;

	for (long i = 0; i < trees; i++)
		s += deep(8) + loops(3);
	return s + 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Calls clock_gettime() in place of main, because main must be in each chain of callers. If a libc
 * function is interrupted, rbp is still that of its caller. So a chain by frame pointers goes from
 * the libc function to its caller's caller, and the caller is missing. */
N void timed(long trees)
{
	double begin = now();
	long s = run(trees);

	printf("%.9f %.9f %d\n", begin, now(), s == 0);
}

int main(int argc, char **argv)
{
	timed(argc > 1 ? atol(argv[1]) : 100);
	return 0;
}
