/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the recursion of deep_recursion.c on the main stack. For this, the program raises
 * RLIMIT_STACK and execs itself, because a new image gets the new limit.
 * @markers 1 main
 * @buffer 256M
 * @quick -DFRAMES=200000
 * @timeout 30
 */
#include <sys/resource.h>
#include "../hostile.h"

#ifndef FRAMES
#define FRAMES 1000000		/* fewer than the open calls that the tracer has room for
				 * (doc/limits.md) */
#endif

static KEEP long recurse(long n)
{
	return n ? opaque(recurse(n - 1)) + 1 : 0;
}

int main(int argc, char **argv)
{
	char *again[] = { argv[0], (char *)"again", NULL };
	struct rlimit rl;

	check(!getrlimit(RLIMIT_STACK, &rl));
	if (argc == 1) {
		rl.rlim_cur = 512ul << 20;
		if (rl.rlim_max != RLIM_INFINITY && rl.rlim_max < rl.rlim_cur)
			return 77;
		check(!setrlimit(RLIMIT_STACK, &rl));
		execv("/proc/self/exe", again);
		die("exec: %m");
	}
	check(rl.rlim_cur == 512ul << 20);
	check_eq(recurse(FRAMES), FRAMES);
	marker_begin(1);
	printf("%d frames\n", FRAMES);
	return 0;
}
