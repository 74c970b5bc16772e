/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 *   stall SIGNAL SECONDS [notsc]
 *
 * Makes calls, sends SIGNAL to the recorder (0: no signal), and makes calls for SECONDS more. A
 * recorder that SIGSTOP has stopped is continued after half of SECONDS.
 *
 * Prints the number of calls of work(), and the most processor time that a hundred calls took, in
 * ms. A wait for the recorder costs processor time. So the printed time shows waits, even on a busy
 * machine. notsc: reading the time-stamp counter faults.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long sink;

__attribute__((noipa)) void work(long i)
{
	sink = i;
}

/* makes a system call, since libc's function reads the time-stamp counter */
static double now(clockid_t clock)
{
	struct timespec t;

	syscall(SYS_clock_gettime, clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static long calls;
static double most;

static void go_on(double ms)
{
	double end = now(CLOCK_MONOTONIC) + ms;

	while (now(CLOCK_MONOTONIC) < end) {
		double t = now(CLOCK_THREAD_CPUTIME_ID);

		for (int i = 0; i < 100; i++)
			work(i);
		calls += 100;
		t = now(CLOCK_THREAD_CPUTIME_ID) - t;
		most = t > most ? t : most;
	}
}

int main(int argc, char **argv)
{
	int signal = atoi(argv[1]);
	double ms = atof(argv[2]) * 1e3;
	pid_t recorder = getppid();

	if (argc > 3)
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	go_on(200);
	if (signal)
		kill(recorder, signal);
	go_on(ms / 2);
	if (signal == SIGSTOP)
		kill(recorder, SIGCONT);
	go_on(ms / 2);
	printf("%ld %.1f\n", calls, most);
	return 0;
}
