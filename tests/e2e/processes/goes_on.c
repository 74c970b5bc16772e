/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A child goes on after the program's end. In the modes z and d the child can't be inspected
 * as usual:
 *   z   the child's main thread has exited
 *   d   the child isn't dumpable
 *   p   neither of these
 * goes_on MODE FILE [NAME]: the child takes the name NAME, and writes to FILE how often it called
 * work().
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noipa)) void work(int i)
{
	sink += (unsigned long)i;
}

static void *thread(void *file)
{
	struct timespec t = { 0, 4000000 };
	FILE *f;

	for (int i = 0; i < 250; i++) {
		work(i);
		nanosleep(&t, NULL);
	}
	f = fopen(file, "w");
	fprintf(f, "%d\n", 250);
	fclose(f);
	_exit(0);
}

int main(int argc, char **argv)
{
	pthread_t t;

	if (fork()) {
		usleep(100000);
		return 0;
	}
	if (argc > 3)
		prctl(PR_SET_NAME, argv[3]);
	if (argv[1][0] == 'd')
		prctl(PR_SET_DUMPABLE, 0);
	pthread_create(&t, NULL, thread, argv[2]);
	if (argv[1][0] == 'z')
		pthread_exit(NULL);
	pause();
}
