/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls of many shapes, all of them below run(), for a profiler to unwind: tree TREES. Prints the
 * clock (CLOCK_MONOTONIC, seconds) when main begins and ends. A tree is 46 calls. */
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

/* saves registers, which its exit restores */
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

/* a frame whose size is only known at run time */
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

/* a function whose loop begins at its entry */
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

int main(int argc, char **argv)
{
	double begin = now();
	long s = run(argc > 1 ? atol(argv[1]) : 100);

	printf("%.9f %.9f %d\n", begin, now(), s == 0);
	return 0;
}
