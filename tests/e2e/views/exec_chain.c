/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* exec_chain N: executes itself N times. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noipa)) int link_of_chain(int n)
{
	__asm__ volatile("nopl 8(%%rax)" : "+r"(n));
	return n - 1;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	char text[16];

	snprintf(text, sizeof(text), "%d", link_of_chain(n));
	if (n)
		execl(argv[0], argv[0], text, (char *)NULL);
	return n != 0;
}
