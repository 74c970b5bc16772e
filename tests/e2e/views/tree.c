/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tree N: runs the same recursion N times, one after the other. The calls form a binary tree, whose
 * leaves are 17 calls below main. */
#include <stdlib.h>

__attribute__((noipa)) int branch(int n)
{
	__asm__ volatile("nopl 8(%%rax)" : "+r"(n));
	return n ? branch(n - 1) + branch(n - 1) : 1;
}

int main(int argc, char **argv)
{
	int sum = 0;

	for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--)
		sum += branch(16);
	return !sum;
}
