/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stops the recorder, so that the buffer becomes full, and makes nested calls. Their ENTRYs find no
 * room. The first nested calls end when the recorder has made room again. The second ones never
 * end: a signal kills the program. Prints the number of calls of work() and of nested().
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "shared_ring.h"

#define DEPTH 300

static volatile long sink;
static long calls;
static pid_t recorder;

__attribute__((noipa)) void work(long i)
{
	sink = i;
}

static void fill(void)
{
	for (int i = 0; i < 50000; i++)
		work(i);
	calls += 50000;
}

static void ends(void)
{
	kill(recorder, SIGCONT);
	wait_for_room(shared_ring());
}

static void is_killed(void)
{
	printf("%ld\n", calls);
	fflush(stdout);
	kill(recorder, SIGCONT);
	kill(getpid(), SIGKILL);
}

__attribute__((noipa)) void nested(int depth, void (*end)(void))
{
	calls++;
	if (depth)
		nested(depth - 1, end);
	work(depth);
	calls++;
	if (!depth)
		end();
	sink = 0;
}

int main(void)
{
	recorder = getppid();
	kill(recorder, SIGSTOP);
	usleep(50000);
	fill();
	nested(DEPTH, ends);
	kill(recorder, SIGSTOP);
	usleep(50000);
	fill();
	nested(DEPTH, is_killed);
	return 0;
}
