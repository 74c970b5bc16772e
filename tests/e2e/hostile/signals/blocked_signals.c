/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread blocks every signal (also the two signals that libc reserves), and calls hooked
 * functions while the program's text is patched. Signals to the process must reach sigwaitinfo and
 * signalfd of the main thread.
 * @markers 1000 blocked_main
 * @serve 200
 * @timeout 20
 */
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include "../hostile.h"

static volatile int stop;
static volatile long rounds;

static KEEP long leaf(long x) { return opaque(x) + 3; }
static KEEP long middle(long x) { return opaque(leaf(x)) + opaque(leaf(x)); }

static KEEP void *blocked_main(void *arg)
{
	unsigned long all = ~0ul, seen = 0;
	long i;

	check(!syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8));
	for (i = 0; i < 200000 || !stop; i++) {
		check_eq(middle(i), 2 * i + 6);
		if (i < 1000)
			marker_begin((int)i);
		rounds = i;
	}
	check(!syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &seen, 8));
	all &= ~(1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1));
	check(seen == all);
	return NULL;
}

int main(void)
{
	struct signalfd_siginfo si;
	siginfo_t info;
	sigset_t set;
	pthread_t t;
	int i, fd;

	sigfillset(&set);
	check(!sigprocmask(SIG_SETMASK, &set, NULL));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	check((fd = signalfd(-1, &set, 0)) >= 0);
	check(!pthread_create(&t, NULL, blocked_main, NULL));
	for (i = 0; i < 2000 || !may_end(); i++) {
		check(!kill(getpid(), SIGUSR1));
		if (i & 1) {
			check_eq(read(fd, &si, sizeof(si)), sizeof(si));
			check_eq(si.ssi_signo, SIGUSR1);
		} else {
			check_eq(sigwaitinfo(&set, &info), SIGUSR1);
			check_eq(info.si_pid, getpid());
		}
	}
	stop = 1;
	check(!pthread_join(t, NULL));
	check(!sigpending(&set) && !sigismember(&set, SIGUSR1));
	puts("2000 signals, all blocked");
	return 0;
}
