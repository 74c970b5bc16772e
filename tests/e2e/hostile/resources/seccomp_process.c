/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program sets a seccomp filter for the whole process (TSYNC). Sandboxes do so before they read
 * untrusted input. The agent must not make a system call for which the filter kills the process.
 * Signals are handled and threads run until main ends the process.
 * @markers 1000 main
 * @status 5
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include "../hostile.h"

static volatile long go, up, spun, ticks;
static KEEP long leaf(long x) { return opaque(x) + 1; }

static KEEP void *spinner(void *arg)
{
	up = 1;
	while (!go)
		__asm__ volatile("pause");
	for (;;)
		spun = leaf(spun);
	return arg;
}
static void on_alarm(int sig) { ticks = leaf(ticks); }

int main(void)
{
#define ALLOW(nr) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_exit), ALLOW(SYS_exit_group),
		ALLOW(SYS_rt_sigreturn),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog p = { sizeof(f) / sizeof(f[0]), f };
	struct itimerval it = { { 0, 2000 }, { 0, 2000 } };
	pthread_t t;
	int n;

	signal(SIGALRM, on_alarm);
	check(!setitimer(ITIMER_REAL, &it, NULL));
	check(!pthread_create(&t, NULL, spinner, NULL));
	while (!up)		/* the thread has made the last system call of its start */
		sched_yield();
	check(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	check(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &p));
	go = 1;
	while (ticks < 150 || spun < 100000)
		leaf(1);
	for (n = 0; n < 1000; n++)
		marker_begin(n);
	check(write(1, "sandboxed\n", 10) == 10);
	_exit(5);
}
