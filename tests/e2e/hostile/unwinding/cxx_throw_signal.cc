/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A timer's signal handler throws exceptions, in two threads. The signal may interrupt any
 * instruction in a tree of short calls (entries, bodies, returns). The functions between
 * throw and catch have no catch clauses and no destructors to run. So they have no table of call
 * sites, and C++ may unwind them from any instruction.
 * @flags -fnon-call-exceptions -fasynchronous-unwind-tables
 * @markers 1000 interrupted_once
 * @timeout 40
 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include "../hostile.h"

static __thread volatile int armed;
static __thread volatile long calls;

static KEEP long leaf1(long x) { return opaque(x) * 3; }
static KEEP long leaf2(long x) { return opaque(x) ^ 0x55; }
static KEEP long inner(long x) { return opaque(leaf1(x)) + opaque(leaf2(x)); }
static KEEP long outer(long x) { return opaque(inner(x)) + opaque(leaf1(x)); }

static KEEP void spin_until_thrown()
{
	long x = 1;

	armed = 1;
	for (;;) {
		x = outer(x);
		calls = calls + 1;
	}
}

static void on_timer(int sig, siginfo_t *si, void *uc)
{
	if (!armed)
		return;
	armed = 0;
	throw 42;
}

static KEEP void interrupted_once(int i)
{
	int got = 0;
	sigset_t set;

	/* The handler of the previous iteration threw and did not return, so its signal is still
	 * blocked. The handler is set without SA_NODEFER, because a second signal must not
	 * interrupt the handler: the second exception would have to leave both handlers. */
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	check(!pthread_sigmask(SIG_UNBLOCK, &set, nullptr));
	try {
		spin_until_thrown();
	} catch (int v) {
		got = v;
	}
	marker_begin(i);
	check_eq(got, 42);
}

static KEEP void *thread_main(void *arg)
{
	struct sigevent se = {};
	struct itimerspec its = {};
	timer_t timer;

	se.sigev_notify = SIGEV_THREAD_ID;
	se.sigev_signo = SIGRTMIN + 3;
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif
	se.sigev_notify_thread_id = syscall(SYS_gettid);
	check(!timer_create(CLOCK_MONOTONIC, &se, &timer));
	its.it_interval.tv_nsec = its.it_value.tv_nsec = 1000003;
	check(!timer_settime(timer, 0, &its, nullptr));
	for (int i = 0; i < 500; i++)
		interrupted_once(i);
	check(!timer_delete(timer));
	check(calls > 0);
	return nullptr;
}

int main()
{
	struct sigaction sa = {};
	pthread_t t;

	/* the first throw allocates memory, so do it outside of a handler */
	try { throw 1; } catch (int) { }
	sa.sa_sigaction = on_timer;
	sa.sa_flags = SA_SIGINFO | SA_RESTART;
	check(!sigaction(SIGRTMIN + 3, &sa, nullptr));
	check(!pthread_create(&t, nullptr, thread_main, nullptr));
	thread_main(nullptr);
	check(!pthread_join(t, nullptr));
	puts("1000 exceptions out of a signal handler");
	return 0;
}
