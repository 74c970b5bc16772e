/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stops all threads of a process by ptrace, and lets them go at once. Any tool that stops a process
 * does at least this. bench/part_attach.py compares the stops of an attach with it.
 *
 *	plain_stop PID
 *
 * Prints the time from the first thread's interrupt to the last thread's release in nanoseconds,
 * and the number of threads.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#define MOST 4096

static pid_t tids[MOST];
static int nr;

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

static void seize_all(const char *pid)
{
	char path[64];
	struct dirent *e;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	DIR *d = opendir(path);

	while (d && (e = readdir(d)) && nr < MOST) {
		pid_t tid = atoi(e->d_name);

		if (tid && !ptrace(PTRACE_SEIZE, tid, NULL, NULL))
			tids[nr++] = tid;
	}
	if (d)
		closedir(d);
}

int main(int argc, char **argv)
{
	int signals[MOST] = { 0 }, status;

	if (argc != 2)
		return 2;
	seize_all(argv[1]);
	unsigned long begin = now();

	for (int i = 0; i < nr; i++)
		ptrace(PTRACE_INTERRUPT, tids[i], NULL, NULL);
	for (int i = 0; i < nr; i++)
		if (waitpid(tids[i], &status, __WALL) == tids[i] && WIFSTOPPED(status) &&
		    status >> 16 != PTRACE_EVENT_STOP)
			signals[i] = WSTOPSIG(status);
	for (int i = 0; i < nr; i++)
		ptrace(PTRACE_DETACH, tids[i], NULL, (void *)(long)signals[i]);
	printf("%lu %d\n", now() - begin, nr);
	return !nr;
}
