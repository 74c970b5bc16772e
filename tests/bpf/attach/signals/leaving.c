/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * eBPF programs send signals whose handlers jump out of the programs: leaving HOW TRIES. HOW is
 * "return" (a program at a return is left) or "nested" (the handler has an alternate stack, and in
 * it another program is left). Then calls last() until its eBPF program returns -1 in its place.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEEP __attribute__((noinline, noclone))

static sigjmp_buf back;
static char alternate[1 << 18];

KEEP int returns(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3 + (x >> 2);
}

KEEP int enters(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 5 + (x >> 2);
}

KEEP int inner(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 7 + (x >> 2);
}

KEEP int last(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x;
}

static void on_usr1(int sig) { siglongjmp(back, 1); }
static void on_usr2(int sig) { exit(inner(1) ? 3 : 4); }

/* The agent can't defer these signals, because SA_RESETHAND takes their handlers away. */
static void install(void)
{
	struct sigaction usr1 = { .sa_handler = on_usr1, .sa_flags = (int)SA_RESETHAND };
	struct sigaction usr2 = { .sa_handler = on_usr2,
				  .sa_flags = (int)(SA_RESETHAND | SA_ONSTACK) };

	sigaction(SIGUSR1, &usr1, NULL);
	sigaction(SIGUSR2, &usr2, NULL);
}

int main(int argc, char **argv)
{
	stack_t s = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	struct timespec nap = { 0, 1000000 };
	int nested = argc > 2 && !strcmp(argv[1], "nested");
	volatile int i;

	if (argc < 3 || sigaltstack(&s, NULL))
		return 2;
	for (i = 0; i < 8; i++) {
		install();
		if (sigsetjmp(back, 1))
			continue;
		return (nested ? enters(i) : returns(i)) < 0 ? 5 : 6;	/* the signal didn't come */
	}
	for (i = 0; i < atoi(argv[2]); i++) {
		if (last(i) == -1)
			return 0;
		nanosleep(&nap, NULL);
	}
	return 1;
}
