/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Like jump.c, but with tail calls. middle() makes only a tail call. outer() makes a call before
 * its tail call. argv[1] is the number of jumps out of a handler. If a jump interrupts calls, these
 * calls may be counted or not counted. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#define CALLS 5		/* the calls of one iteration: middle, leaf, outer, leaf, leaf */

static sigjmp_buf again;
static volatile unsigned long calls;

__attribute__((noinline)) long leaf(long i)
{
	__asm__ volatile("" : : "r"(i));
	return i + 1;
}

long middle(long i), outer(long i);
__asm__(
	".text\n.macro func name\n.globl \\name\n.type \\name, @function\n\\name:\n"
	".cfi_startproc\n.endm\n"
	".macro endfunc name\n.cfi_endproc\n.size \\name, . - \\name\n.endm\n"
	"func middle\n add $1, %rdi\n jmp leaf\nendfunc middle\n .balign 16\n"
	"func outer\n push %rdi\n .cfi_adjust_cfa_offset 8\n call leaf\n"
	" pop %rdi\n .cfi_adjust_cfa_offset -8\n"
	" jmp leaf\nendfunc outer\n");

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
			middle(1);
			outer(1);
			calls += CALLS;
		}
	}
	printf("calls %lu %lu\n", calls, calls + CALLS * (unsigned long)most);
	return 0;
}
