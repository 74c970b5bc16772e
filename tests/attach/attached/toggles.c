/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sets a handler of SIGSEGV and SIGBUS, raises the signal, and sets the default action again, all
 * the time. If an attach or a detach changes the action that the program has just set, the signal
 * ends the program, or sigaction() reports another action. Ends with the status 0 at the end of its
 * input.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile int ends, runs;

static void handler(int sig)
{
	runs++;
}

/* The thread that runs this function can be borrowed. A thread in a handler can't. */
static void *wait_for_end(void *arg)
{
	char c;

	while (read(0, &c, 1) > 0)
		;
	ends = 1;
	return arg;
}

static int toggle(int sig)
{
	struct sigaction on = { .sa_handler = handler }, off = { .sa_handler = SIG_DFL }, old;
	int before = runs;

	return sigaction(sig, &on, &old) || old.sa_handler != SIG_DFL || raise(sig) ||
	       runs != before + 1 || sigaction(sig, &off, &old) || old.sa_handler != handler;
}

int main(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, wait_for_end, NULL))
		return 1;
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	while (!ends)
		if (toggle(SIGSEGV) || toggle(SIGBUS))
			return 1;
	return 0;
}
