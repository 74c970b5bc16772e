/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes calls until its standard input has data or ends. */
#include <poll.h>

__attribute__((noipa)) int leaf(int x)
{
	__asm__ volatile("nopl 8(%%rax)" : "+r"(x));
	return x + 1;
}

__attribute__((noipa)) int work(int x)
{
	return leaf(x) + leaf(x + 1);
}

int main(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	int n = 0;

	while (!poll(&in, 1, 1))
		n += work(n & 7);
	return 0;
}
