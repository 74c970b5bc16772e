/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A small program, as a seed for the fuzzers of the module analysis. With some options, for example
 * -fpatchable-function-entry, the compiler writes records that the analysis reads. The program is
 * built once with each of these options. */
#include <stdio.h>

int leaf(int x);
int branches(int x);
int table(int x);
int cleans_up(int x);

__attribute__((noinline)) int leaf(int x)
{
	return x * 3 + 1;
}

static void clean(int *p)
{
	leaf(*p);
}

__attribute__((noinline)) int cleans_up(int x)
{
	__attribute__((cleanup(clean))) int y = x;

	return puts("x") + leaf(y);
}

__attribute__((noinline)) int branches(int x)
{
	int sum = 0;

	for (int i = 0; i < x; i++)
		sum += i & 1 ? leaf(i) : cleans_up(i);
	return sum;
}

__attribute__((noinline)) int table(int x)
{
	switch (x) {
	case 0: return leaf(9);
	case 1: return branches(2);
	case 2: return cleans_up(3);
	case 3: return leaf(7) + 4;
	case 4: return branches(1);
	case 5: return 12;
	default: return x;
	}
}

int main(int argc, char **argv)
{
	return table(argc) == branches(argc);
}
