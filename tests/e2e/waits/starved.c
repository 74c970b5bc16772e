/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * starved PLUGIN CPU MS: takes processor time away from the recorder. A child keeps processor CPU
 * busy for MS milliseconds. Meanwhile this program loads the plugin, and a second child executes
 * the program again. The busy child doesn't call setsid(), because the scheduler may give each
 * session its own share of processor time. In a session of its own, the child would slow the
 * recorder less.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static pid_t spin_on(int cpu, double time)
{
	pid_t pid = fork();
	cpu_set_t set;

	if (pid)
		return pid;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (double end = seconds() + time; seconds() < end;)
		for (volatile int i = 0; i < 100000; i++)
			;
	_exit(0);
}

int main(int argc, char **argv)
{
	int status = 0;
	char c;

	if (argc < 4)
		return 3;
	puts("ready");
	fflush(stdout);
	if (read(0, &c, 1) != 1)
		return 1;
	pid_t busy = spin_on(atoi(argv[2]), atoi(argv[3]) / 1e3), pid;
	usleep(200000);		/* waits until the recorder has used up its first share of
				 * processor time */
	void *lib = dlopen(argv[1], RTLD_NOW);
	int (*call)(int) = lib ? (int (*)(int))dlsym(lib, "plugin_call") : NULL;

	printf("%d\n", call ? call(20) : 0);
	fflush(stdout);
	pid = fork();
	if (!pid)
		execl(argv[0], argv[0], NULL);
	waitpid(pid, &status, 0);
	waitpid(busy, NULL, 0);
	printf("%d\n", WEXITSTATUS(status));
	return 0;
}
