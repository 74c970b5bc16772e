/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* many_calls N: makes N calls of a leaf, two levels below main. */
#include <stdlib.h>

__attribute__((noipa)) long leaf(long n)
{
	__asm__ volatile("nopl 8(%%rax)" : "+r"(n));
	return n + 1;
}

__attribute__((noipa)) long loop(long n)
{
	long sum = 0;

	while (n-- > 0)
		sum += leaf(n);
	return sum;
}

int main(int argc, char **argv)
{
	return loop(argc > 1 ? atol(argv[1]) : 1000) < 0;
}
