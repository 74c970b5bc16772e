/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `attached CALLS` runs a loop of CALLS calls of leaf() five times. It prints the CPU time per call
 * in the fastest loop, in ns, as JSON. The bench compares runs with and without an eBPF program at
 * leaf(). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noipa)) int leaf(int a)
{
	return a * 3 + (a >> 2) + 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000000;
	double best = 1e18;
	int x = 0;

	for (int k = 0; k < 5; k++) {
		double from = now();

		for (long i = 0; i < n; i++)
			x = leaf(x);
		if ((now() - from) / (double)n < best)
			best = (now() - from) / (double)n;
	}
	printf("{\"call\": %.3f, \"x\": %d}\n", best, x);
	return 0;
}
