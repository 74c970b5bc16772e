/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first instruction of a function faults, again and again, and a slow handler skips it. So an
 * attach and a detach nearly always meet the handler, and the text changes while it runs. Ends with
 * the status 0 at the end of its input, if the function has always returned its argument.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define LONGEST_NS 300000000
#define UD2_LEN 2

long faults(long a);
__asm__(".text; .globl faults; .type faults, @function\n"
	"faults: .cfi_startproc\n"
	"ud2; nop; nop; nop; mov %rdi, %rax; ret\n"
	".cfi_endproc; .size faults, . - faults\n");

static volatile int ends;

static __attribute__((noinline)) long leaf(long a)
{
	__asm__ volatile("");
	return a + 1;
}

static void skip(int sig, siginfo_t *si, void *context)
{
	ucontext_t *uc = context;
	struct timespec t = { 0, rand() % LONGEST_NS };

	if ((uint64_t)uc->uc_mcontext.gregs[REG_RIP] != (uint64_t)si->si_addr)
		_exit(2);
	for (int i = 0; i < 100; i++)
		leaf(i);
	nanosleep(&t, NULL);
	for (int i = 0; i < 100; i++)
		leaf(i);
	uc->uc_mcontext.gregs[REG_RIP] += UD2_LEN;
}

/* The thread that runs this function can be borrowed. The main thread can't while its handler
 * runs. */
static void *wait_for_end(void *arg)
{
	char c;

	while (read(0, &c, 1) > 0)
		;
	ends = 1;
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = skip, .sa_flags = SA_SIGINFO };
	pthread_t t;

	if (sigaction(SIGILL, &sa, NULL) || pthread_create(&t, NULL, wait_for_end, NULL))
		return 1;
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	for (long n = 0; !ends; n++)
		if (faults(n) != n)
			return 1;
	return 0;
}
