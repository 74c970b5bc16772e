/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A timer sends SIGSEGV and SIGBUS while functions are entered and left all the time. These signals
 * are no faults: the handler returns, and the program continues with unchanged registers.
 * @markers 20 main
 */
#include <signal.h>
#include <sys/syscall.h>
#include "../hostile.h"

#define SIGNALS 20
static volatile int handled;

static void on_signal(int sig, siginfo_t *si, void *uc)
{
	check_eq(si->si_code, SI_TIMER);
	handled++;
}

static KEEP int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static timer_t start_timer(int sig)
{
	struct itimerspec often = { { 0, 50000 }, { 0, 50000 } };
	struct sigevent to = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = sig };
	timer_t timer;

	to._sigev_un._tid = (int)syscall(SYS_gettid);
	check(!timer_create(CLOCK_MONOTONIC, &to, &timer));
	check(!timer_settime(timer, 0, &often, NULL));
	return timer;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	int n;

	check(!sigaction(SIGSEGV, &sa, NULL) && !sigaction(SIGBUS, &sa, NULL));
	for (n = 0; n < 20; n++) {
		timer_t timer = start_timer(n & 1 ? SIGBUS : SIGSEGV);

		for (handled = 0; handled < SIGNALS;)
			check_eq(fib(12), 144);
		check(!timer_delete(timer));
		marker_begin(n);
	}
	puts("20 times 20 signals");
	return 0;
}
