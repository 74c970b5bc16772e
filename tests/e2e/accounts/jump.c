/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Leaves a handler by siglongjmp() argv[1] times, as programs do to implement a timeout. If a jump
 * interrupts a call, the call may be counted or not counted. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static sigjmp_buf again;
static volatile unsigned long calls;

__attribute__((noinline)) long leaf(long i)
{
	__asm__ volatile("" : : "r"(i));
	return i + 1;
}

static void on_alarm(int sig)
{
	siglongjmp(again, 1);
}

int main(int argc, char **argv)
{
	volatile int jumps = 0, most = argc > 1 ? atoi(argv[1]) : 500;

	signal(SIGALRM, on_alarm);
	sigsetjmp(again, 1);
	while (jumps < most) {
		struct itimerval it = { .it_value.tv_usec = 300 + rand() % 300 };

		jumps++;
		setitimer(ITIMER_REAL, &it, NULL);
		for (;;) {
			leaf(1);
			calls++;
		}
	}
	printf("calls %lu %lu\n", calls, calls + (unsigned long)most);
	return 0;
}
