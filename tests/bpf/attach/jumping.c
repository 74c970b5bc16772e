/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A signal handler jumps out of the code that it interrupted, 5000 times. After the last jump, the
 * program makes 20 calls. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

static sigjmp_buf back;
static volatile long jumps, armed;

__attribute__((noinline, noclone)) int often(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3 + (x >> 2);
}

__attribute__((noinline, noclone)) int last(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 5 + (x >> 2);
}

static void on_alarm(int sig)
{
	if (!armed)
		return;
	armed = 0;
	jumps++;
	siglongjmp(back, 1);
}

int main(void)
{
	struct itimerval t = { { 0, 100 }, { 0, 100 } };
	struct sigaction sa = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
	while (jumps < 5000) {
		if (sigsetjmp(back, 1))
			continue;
		armed = 1;
		for (int i = 0; i < 10000; i++)
			often(i);
		armed = 0;
	}
	memset(&t, 0, sizeof(t));
	setitimer(ITIMER_REAL, &t, NULL);
	for (int i = 0; i < 20; i++)
		last(i);
	return 0;
}
