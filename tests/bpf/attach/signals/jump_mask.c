/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A handler jumps out of an eBPF program in which another signal was deferred. At that time, the
 * agent has blocked most signals. Usage: jump_mask restoring|plain|raw. If the jump restores the
 * mask ("restoring"), the agent must not change the mask any more. If not, the agent must unblock
 * the signals that it has blocked.
 *
 * raw: the agent doesn't know of the handler that jumps, and no signal was deferred. After the
 * jump, a signal interrupts the agent's code, in sigaction(). As no program runs any more, it must
 * come at once. It may also interrupt libc's code, so there are 200 rounds.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

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

__asm__("restorer: mov $15, %eax\n\tsyscall\n");	/* rt_sigreturn */
void restorer(void);

static void install_past_libc(void)
{
	struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } sa = {
		on_fpe, 0x04000000, restorer, 0	/* SA_RESTORER */
	};

	syscall(SYS_rt_sigaction, SIGFPE, &sa, NULL, 8);
}

/* Calls interrupted() from far below the caller's frame. */
KEEP int call_below(int x)
{
	volatile char room[16384];

	room[0] = (char)x;
	return interrupted(x) + room[0];
}

static void install_until(const struct sigaction *usr2, int until)
{
	sigset_t set;

	do {
		for (int i = 0; i < 100; i++)
			sigaction(SIGUSR2, usr2, NULL);
		sigprocmask(SIG_BLOCK, NULL, &set);
	} while (came < until && !sigismember(&set, SIGUSR1));
}

static void jump_from_raw_handlers(void)
{
	struct sigaction alarm = { .sa_handler = on_usr1 };
	volatile int i;

	install_past_libc();
	sigaction(SIGALRM, &alarm, NULL);
	for (i = 0; i < 200; i++) {
		struct itimerval t = { { 0, 0 }, { 0, 50 + i % 97 } };

		if (!sigsetjmp(back, 1)) {
			call_below(2);
			return;		/* the signal didn't come */
		}
		setitimer(ITIMER_REAL, &t, NULL);
		install_until(&alarm, i + 1);
		if (came <= i)
			return;
	}
}

int main(int argc, char **argv)
{
	struct sigaction usr1 = { .sa_handler = on_usr1 }, fpe = { .sa_handler = on_fpe };
	int restoring = argc > 1 && !strcmp(argv[1], "restoring");
	int raw = argc > 1 && !strcmp(argv[1], "raw");
	sigset_t set;

	sigaction(SIGUSR1, &usr1, NULL);
	sigaction(SIGFPE, &fpe, NULL);
	if (raw)
		jump_from_raw_handlers();
	else if (!sigsetjmp(back, restoring)) {
		interrupted(1);
		return 2;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	if (restoring)
		sigprocmask(SIG_BLOCK, &set, NULL);
	if (!raw)
		later(1);
	sigprocmask(SIG_BLOCK, NULL, &set);
	printf("came %d, USR1 %d, USR2 %d, FPE %d\n", (int)came, sigismember(&set, SIGUSR1),
	       sigismember(&set, SIGUSR2), sigismember(&set, SIGFPE));
	return 0;
}
