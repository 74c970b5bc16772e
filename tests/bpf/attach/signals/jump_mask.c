/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A handler jumps out of an eBPF program in which another signal was deferred. At that time, the
 * agent has blocked most signals. Usage: jump_mask restoring|plain. If the jump restores the mask
 * ("restoring"), the agent must not change the mask any more. If not, the agent must unblock the
 * signals that it has blocked.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define KEEP __attribute__((noinline, noclone))

static sigjmp_buf back;
static volatile sig_atomic_t came;

KEEP int interrupted(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3 + (x >> 2);
}

KEEP int later(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 5 + (x >> 2);
}

static void on_usr1(int sig) { came = came + 1; }
static void on_fpe(int sig) { siglongjmp(back, 1); }

int main(int argc, char **argv)
{
	struct sigaction usr1 = { .sa_handler = on_usr1 }, fpe = { .sa_handler = on_fpe };
	int restoring = argc > 1 && !strcmp(argv[1], "restoring");
	sigset_t set;

	sigaction(SIGUSR1, &usr1, NULL);
	sigaction(SIGFPE, &fpe, NULL);
	if (!sigsetjmp(back, restoring)) {
		interrupted(1);
		return 2;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	if (restoring)
		sigprocmask(SIG_BLOCK, &set, NULL);
	later(1);
	sigprocmask(SIG_BLOCK, NULL, &set);
	printf("came %d, USR1 %d, USR2 %d, FPE %d\n", (int)came, sigismember(&set, SIGUSR1),
	       sigismember(&set, SIGUSR2), sigismember(&set, SIGFPE));
	return 0;
}
