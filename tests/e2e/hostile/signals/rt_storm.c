/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread and a child send many queued real-time signals. No signal may be lost, doubled or out of
 * order, and each signal's value must be right.
 * @slow
 * @markers 100 main/some_calls
 * @serve 100
 * @timeout 40
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include "../hostile.h"

#define EACH 20000
static volatile int next_value[2], bad;
static volatile long handled;

static KEEP long leaf(long x) { return opaque(x) + 1; }
static KEEP long middle(long x) { return opaque(leaf(x)) + opaque(leaf(x)); }

static void on_rt(int sig, siginfo_t *si, void *uc)
{
	int who = sig - SIGRTMIN - 1;

	if (si->si_code != SI_QUEUE || si->si_value.sival_int != next_value[who])
		bad++;
	next_value[who] = si->si_value.sival_int + 1;
	handled += middle(1) == 4;
}

static KEEP void queue_all(pid_t pid, int who)
{
	int i;

	for (i = 0; i < EACH; i++) {
		union sigval v = { .sival_int = i };

		while (sigqueue(pid, SIGRTMIN + 1 + who, v)) {
			check(errno == EAGAIN);
			usleep(100);
		}
	}
}

static KEEP void *sender(void *arg)
{
	queue_all(getpid(), 0);
	return NULL;
}

static KEEP void some_calls(int i)
{
	int k;

	for (k = 0; k < 50; k++)
		check_eq(middle(k), 2 * k + 2);
	if (i < 100)
		marker_begin(i);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_rt, .sa_flags = SA_SIGINFO | SA_RESTART };
	sigset_t all, old;
	pthread_t t;
	pid_t pid, me = getpid();
	int i, status;

	sigaddset(&sa.sa_mask, SIGRTMIN + 1);
	sigaddset(&sa.sa_mask, SIGRTMIN + 2);
	check(!sigaction(SIGRTMIN + 1, &sa, NULL));
	check(!sigaction(SIGRTMIN + 2, &sa, NULL));
	/* the sender's thread must never handle the signals */
	sigfillset(&all);
	check(!pthread_sigmask(SIG_SETMASK, &all, &old));
	check(!pthread_create(&t, NULL, sender, NULL));
	check(!pthread_sigmask(SIG_SETMASK, &old, NULL));
	pid = fork();
	check(pid >= 0);
	if (!pid) {
		queue_all(me, 1);
		_exit(0);
	}
	for (i = 0; i < 100 || next_value[0] < EACH || next_value[1] < EACH || !may_end(); i++)
		some_calls(i);
	check(waitpid(pid, &status, 0) == pid && !status);
	check(!pthread_join(t, NULL));
	check_eq(bad, 0);
	check_eq(handled, 2 * EACH);
	puts("40000 queued signals, none lost");
	return 0;
}
