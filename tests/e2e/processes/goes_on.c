/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A child goes on after the program's end. In the modes z and d the child can't be inspected
 * as usual:
 *   z   the child's main thread has exited
 *   d   the child isn't dumpable
 *   p   neither of these
 * goes_on MODE FILE SAID [NAME]: the child takes the name NAME. It calls work() until the recorder
 * has written to the file SAID that another process is recorded. Then it writes to FILE how often
 * it called work().
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define LEAST	100	/* calls, one each 4 ms */
#define MOST	15000	/* if the recorder says nothing, the test fails */

static volatile unsigned long sink;
static const char *file, *said;

__attribute__((noipa)) void work(int i)
{
	sink += (unsigned long)i;
}

static int is_said(void)
{
	int fd = open(said, O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = 0;
	return strstr(text, "and is recorded") != NULL;
}

static void *thread(void *unused)
{
	struct timespec t = { 0, 4000000 };
	char part[4096];
	int n;
	FILE *f;

	for (n = 0; n < LEAST || (n < MOST && !is_said()); n++) {
		work(n);
		nanosleep(&t, NULL);
	}
	snprintf(part, sizeof(part), "%s.part", file);
	f = fopen(part, "w");
	fprintf(f, "%d\n", n);
	fclose(f);
	rename(part, file);
	_exit(0);
}

int main(int argc, char **argv)
{
	pthread_t t;

	if (fork()) {
		usleep(100000);
		return 0;
	}
	file = argv[2];
	said = argv[3];
	if (argc > 4)
		prctl(PR_SET_NAME, argv[4]);
	if (argv[1][0] == 'd')
		prctl(PR_SET_DUMPABLE, 0);
	pthread_create(&t, NULL, thread, NULL);
	if (argv[1][0] == 'z')
		pthread_exit(NULL);
	pause();
}
