/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Computes without system calls. With the argument "mallocs", it allocates all the time, too.
 * Ends when the second argument, a file, exists no longer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double step(double x)
{
	for (int i = 0; i < 50000; i++)
		x = x * 1.0000001 + 1.0 / (x + i);
	return x;
}

int main(int argc, char **argv)
{
	double x = 1;
	int mallocs = !strcmp(argv[1], "mallocs");

	printf("ready\n");
	fflush(stdout);
	for (unsigned long n = 0; n % 1024 || !access(argv[2], F_OK); n++) {
		x = step(x);
		for (int i = 0; mallocs && i < 2000; i++) {
			volatile char *p = malloc(100 + (size_t)i);

			p[0] = (char)i;
			free((void *)p);
		}
	}
	printf("result %d\n", x > 1);
	return 0;
}
