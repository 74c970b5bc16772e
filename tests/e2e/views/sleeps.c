/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sleeps [SECONDS]: sleeps for 100 ms, then for SECONDS. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

__attribute__((noipa)) void sleeps_100_ms(void)
{
	struct timespec ts = { .tv_nsec = 100000000 };

	nanosleep(&ts, NULL);
}

int main(int argc, char **argv)
{
	puts("here");
	fflush(stdout);
	sleeps_100_ms();
	if (argc > 1)
		sleep((unsigned)atoi(argv[1]));
	return 0;
}
