/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The end of the main file of a generated program (part_scale.py). The file defines functions[],
 * and then includes this header. The program calls these functions in random order, each several
 * times, and prints the time of a call in ns as JSON. The first pass over the functions isn't
 * timed.
 * With an argument, which names a directory, the program first writes its PID to the directory's
 * file `pid`, and waits for the file `go`.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define NR	(sizeof(functions) / sizeof(functions[0]))
#define PASSES	40

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void wait_in(const char *dir)
{
	FILE *f;

	if (chdir(dir) || !(f = fopen("pid.new", "w")))
		return;
	fprintf(f, "%d", getpid());
	fclose(f);
	rename("pid.new", "pid");
	while (access("go", F_OK))
		usleep(1000);
}

int main(int argc, char **argv)
{
	unsigned random = 1, x = 0;

	for (unsigned i = NR - 1; i; i--) {
		unsigned (*f)(unsigned) = functions[i];

		random = random * 1664525 + 1013904223;
		functions[i] = functions[(random >> 8) % (i + 1)];
		functions[(random >> 8) % (i + 1)] = f;
	}
	if (argc > 1)
		wait_in(argv[1]);
	double start = 0;
	for (int pass = -1; pass < PASSES; pass++) {
		if (!pass)
			start = now();
		for (unsigned i = 0; i < NR; i++)
			x = functions[i](x);
	}
	printf("{\"ns\": %.3f, \"result\": %u}\n", (now() - start) / (PASSES * (double)NR), x);
	return 0;
}
