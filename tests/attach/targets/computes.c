/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Computes without system calls. With the argument "mallocs", it allocates all the time, too.
 * With the argument "beside", a second thread is always in a function of libc. Ends when the second
 * argument, a file, exists no longer.
 */
#include <pthread.h>
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

static void *fill(void *arg)
{
	static char memory[1 << 20];

	for (int c = 0;; c++)
		memset(memory, c, sizeof(memory));
	return arg;
}

int main(int argc, char **argv)
{
	double x = 1;
	int mallocs = !strcmp(argv[1], "mallocs");

	pthread_t t;

	if (!strcmp(argv[1], "beside") && pthread_create(&t, NULL, fill, NULL))
		return 1;
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
