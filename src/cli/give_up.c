/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread waits for the signals. When one of them comes, the thread sends a real-time signal to
 * the thread that writes the output. The handler sets the error of the output, and the signal
 * interrupts a write that waits. A signal that comes just before the write begins doesn't interrupt
 * it. So the signal is sent again and again.
 *
 * The main thread gets the same signal, because it may wait in a write of a message.
 */
#include "cli/give_up.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "view/out.h"

#define INTERRUPT	SIGRTMIN
#define AGAIN_NS	20000000

static const int ending[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };
static struct pb_out *output;
static _Atomic pid_t writer;
static pthread_t watcher;
static bool watching;

/* Only the writing thread uses `error`, so only this thread sets it. */
static void on_interrupt(int sig)
{
	(void)sig;
	if (gettid() == writer && !output->error)
		output->error = ECANCELED;
}

static void *watch(void *signals)
{
	const struct timespec ts = { .tv_nsec = AGAIN_NS };

	while (sigwaitinfo(signals, NULL) < 0)
		;
	for (;;) {
		tgkill(getpid(), writer, INTERRUPT);
		if (writer != getpid())
			tgkill(getpid(), getpid(), INTERRUPT);
		nanosleep(&ts, NULL);
	}
	return NULL;
}

void cli_give_up_writer(void)
{
	pid_t tid = gettid();
	sigset_t set;

	if (writer == tid)
		return;
	writer = tid;
	sigemptyset(&set);
	sigaddset(&set, INTERRUPT);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void cli_give_up_begin(struct pb_out *out)
{
	struct sigaction act = { .sa_handler = on_interrupt }, old;
	static sigset_t signals;
	sigset_t all, before;

	output = out;
	sigaction(INTERRUPT, &act, NULL);
	sigemptyset(&signals);
	for (unsigned i = 0; i < pb_array_size(ending); i++)
		if (!sigaction(ending[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaddset(&signals, ending[i]);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	watching = !pthread_create(&watcher, NULL, watch, &signals);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The thread is cancelled while it waits for a signal, or while it sleeps. */
void cli_give_up_end(void)
{
	if (!watching)
		return;
	pthread_cancel(watcher);
	pthread_join(watcher, NULL);
	watching = false;
}
