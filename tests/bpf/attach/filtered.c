/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program whose seccomp filter is set before the program begins. If a thread makes one of the
 * system calls in forbidden[], the filter kills the program. The program itself never makes these
 * calls, but helpers of eBPF programs might make them. With the argument "fault" or "raise", the
 * program ends by a fault, or by a SIGBUS that it sends to itself.
 *
 * Built with -DLAUNCHER, this file is the launcher. The launcher sets the filter and executes
 * argv[1]. argv[1] is the build without -DLAUNCHER. If the launcher set the filter through libc,
 * the agent would notice the filter and would not trace argv[1]. So the launcher has its own
 * `syscall` instruction. In a program with such an instruction, the agent avoids reads that may
 * fault (doc/design/reads.md). The test needs these reads, so the traced program must not have the
 * instruction, and the launcher is a separate build.
 */
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS 1000

static const int forbidden[] = {
	SYS_process_vm_readv, SYS_process_vm_writev, SYS_getuid, SYS_getgid, SYS_kill,
	SYS_rt_tgsigqueueinfo,
};

#ifdef LAUNCHER
static long prctl_itself(long op, long a, const void *b)
{
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	long ret = SYS_prctl;

	__asm__ volatile("syscall" : "+a"(ret) : "D"(op), "S"(a), "d"(b), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

static void set_filter(void)
{
	enum { NR = sizeof(forbidden) / sizeof(forbidden[0]) };
	struct sock_filter f[2 * NR + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) };
	struct sock_fprog p = { sizeof(f) / sizeof(f[0]), f };

	for (int i = 0; i < NR; i++) {
		f[1 + 2 * i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							    (unsigned)forbidden[i], 0, 1);
		f[2 + 2 * i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							    SECCOMP_RET_KILL_PROCESS);
	}
	f[2 * NR + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl_itself(PR_SET_NO_NEW_PRIVS, 1, NULL) ||
	    prctl_itself(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		exit(77);
}
#endif

__attribute__((noinline)) long look(const char *text, const void *nowhere)
{
	__asm__ volatile("" : : : "memory");
	return text[0] + (nowhere != NULL);
}

static void *work(void *arg)
{
	if (arg)
		pthread_setname_np(pthread_self(), arg);
	char *text = strdup("from the heap");

	for (int i = 0; i < CALLS; i++)
		look(text, (void *)64);
	free(text);
	return NULL;
}

/* Without a seccomp filter, the agent delays a signal that arrives during an eBPF program. With the
 * filter it doesn't, so this handler interrupts eBPF programs. */
static void on_alarm(int sig)
{
}

int main(int argc, char **argv)
{
	pthread_t t;

#ifdef LAUNCHER
	set_filter();
	execl(argv[1], argv[1], argv[2], NULL);
	return 1;
#endif
	signal(SIGALRM, on_alarm);
	ualarm(200, 200);
	work(NULL);
	pthread_create(&t, NULL, work, "second");
	pthread_join(t, NULL);
	if (argc > 1 && !strcmp(argv[1], "fault"))
		*(volatile int *)16 = 0;
	if (argc > 1)
		raise(SIGBUS);
	return 3;
}
