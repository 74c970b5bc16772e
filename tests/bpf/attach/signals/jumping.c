/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A signal handler jumps out of the code that it interrupted, 5000 times. After each jump, the
 * program sends a signal to itself, which must come at once. After the last jump, it waits until
 * the ring buffer is empty, and makes 20 calls. With the argument "raw", the handler that jumps is
 * installed past libc. Then records may stay reserved, so the program doesn't wait.
 *
 * With the argument "vfork", nothing jumps. A vfork child gets 2000 signals while it makes calls.
 * All of them must reach the child, and none the parent.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_MS	300000	/* then a record of the jumps stays reserved */

static sigjmp_buf back;
static volatile long jumps, armed, came;

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

/* The eBPF program replaces the result. */
__attribute__((noinline, noclone)) unsigned long unread(unsigned long bytes)
{
	__asm__ volatile("" : "+r"(bytes));
	return bytes;
}

static void on_alarm(int sig)
{
	if (!armed)
		return;
	armed = 0;
	jumps++;
	siglongjmp(back, 1);
}

static void on_usr1(int sig) { came++; }

static volatile pid_t child;
static volatile long strayed;

static void on_childs_alarm(int sig)
{
	jumps++;
	if (getpid() != child)
		strayed++;
}

static int in_vfork_child(void)
{
	struct itimerval t = { { 0, 100 }, { 0, 100 } }, none = { { 0 } };
	int status;
	pid_t pid;

	signal(SIGALRM, on_childs_alarm);
	often(1);	/* the thread gets its state in the parent */
	pid = vfork();
	if (!pid) {
		child = getpid();
		setitimer(ITIMER_REAL, &t, NULL);
		while (jumps < 2000)
			often(1);
		setitimer(ITIMER_REAL, &none, NULL);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return 1;
	if (strayed)
		printf("%ld signals came to the parent\n", strayed);
	for (int i = 0; i < 20; i++)
		last(i);
	return strayed != 0;
}

__asm__("restorer: mov $15, %eax\n\tsyscall\n");	/* rt_sigreturn */
void restorer(void);

static void install_past_libc(void)
{
	struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } sa = {
		on_alarm, 0x04000000, restorer, 0	/* SA_RESTORER */
	};

	syscall(SYS_rt_sigaction, SIGALRM, &sa, NULL, 8);
}

int main(int argc, char **argv)
{
	struct itimerval t = { { 0, 100 }, { 0, 100 } };
	struct sigaction sa = { .sa_handler = on_alarm }, usr1 = { .sa_handler = on_usr1 };

	if (argc > 1 && !strcmp(argv[1], "vfork"))
		return in_vfork_child();
	sigaction(SIGUSR1, &usr1, NULL);
	sigaction(SIGALRM, &sa, NULL);
	if (argc > 1)
		install_past_libc();
	setitimer(ITIMER_REAL, &t, NULL);
	while (jumps < 5000) {
		if (sigsetjmp(back, 1)) {
			raise(SIGUSR1);
			if (came != jumps) {
				printf("signal %ld didn't come\n", jumps);
				return 1;
			}
			continue;
		}
		armed = 1;
		for (int i = 0; i < 10000; i++)
			often(i);
		armed = 0;
	}
	memset(&t, 0, sizeof(t));
	setitimer(ITIMER_REAL, &t, NULL);
	for (int i = 0; argc == 1 && i < MOST_MS && unread(1); i++)
		usleep(1000);
	for (int i = 0; i < 20; i++)
		last(i);
	return 0;
}
