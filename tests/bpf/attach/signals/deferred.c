/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls long_program() until 200 signals have come. Their handler calls handled(). The eBPF program
 * at long_program() mostly runs in the vDSO. Prints how many signals have come: one more may come
 * before the timer is stopped. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

static volatile sig_atomic_t signals;

__attribute__((noinline, noclone)) int long_program(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3 + (x >> 2);
}

__attribute__((noinline, noclone)) int handled(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 5 + (x >> 2);
}

static void on_alarm(int sig)
{
	signals = signals + (handled(sig) != 0);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct itimerval t = { { 0, 500 }, { 0, 500 } };

	if (sigaction(SIGALRM, &sa, NULL) || setitimer(ITIMER_REAL, &t, NULL))
		return 2;
	for (int i = 0; signals < 200; i++)
		long_program(i);
	memset(&t, 0, sizeof(t));
	setitimer(ITIMER_REAL, &t, NULL);
	printf("%d signals\n", (int)signals);
	return 0;
}
