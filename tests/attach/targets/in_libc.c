/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls one function of libc again and again, so that its only thread is in libc nearly all the
 * time. The first argument is the function. Ends when the second argument, a file, exists no
 * longer.
 */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void read_directory(void)
{
	DIR *d = opendir("/usr/lib");

	while (d && readdir(d))
		;
	if (d)
		closedir(d);
}

static void call(const char *name)
{
	struct timespec t;
	struct stat st;

	if (!strcmp(name, "stat"))
		stat("/usr/lib/../lib/../lib/../bin", &st);
	else if (!strcmp(name, "readdir"))
		read_directory();
	else if (!strcmp(name, "yield"))
		sched_yield();
	else if (!strcmp(name, "clock"))
		clock_gettime(CLOCK_MONOTONIC, &t);
	else
		abort();
}

int main(int argc, char **argv)
{
	printf("ready\n");
	fflush(stdout);
	while (!access(argv[2], F_OK))
		for (int i = 0; i < 1000; i++)
			call(argv[1]);
	printf("end\n");
	return 0;
}
