/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls a function, and then lives until its input ends, so that its name can be read. */
#include <stdio.h>

__attribute__((noinline, noclone)) int call(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3 + (x >> 2);
}

int main(void)
{
	int n = call(1);

	while (getchar() != EOF)
		;
	return n != 3;
}
