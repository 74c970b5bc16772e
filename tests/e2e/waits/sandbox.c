/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program with a seccomp filter that kills the process at any unexpected system call. The agent
 * must make no system call that the filter forbids.
 *
 *   sandbox prctl|syscall|probe|refused PROGRAM
 *   sandbox setuid
 *
 * prctl, syscall: a child sets the filter by this call, and executes PROGRAM.
 * probe: like libseccomp, the child only asks whether the kernel supports filters. Then it executes
 * PROGRAM.
 * refused: the kernel refuses the child's filter. Then the child executes PROGRAM.
 * setuid: the program waits for a byte, sets the filter for itself, changes its user ids, prints a
 * line, and waits for another byte.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ALLOW(nr) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Allows the system calls that a static program needs, and execve, setuid and read. */
static struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	ALLOW(SYS_execve), ALLOW(SYS_write), ALLOW(SYS_brk), ALLOW(SYS_arch_prctl),
	ALLOW(SYS_exit_group), ALLOW(SYS_readlink), ALLOW(SYS_readlinkat),
	ALLOW(SYS_set_tid_address), ALLOW(SYS_set_robust_list), ALLOW(SYS_rseq),
	ALLOW(SYS_prlimit64), ALLOW(SYS_getrandom), ALLOW(SYS_mprotect), ALLOW(SYS_newfstatat),
	ALLOW(SYS_fstat), ALLOW(SYS_uname), ALLOW(SYS_setuid), ALLOW(SYS_read),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
static struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };

__attribute__((noipa)) static int traced(int n) { return n + 1; }

/* Takes 20 ms of real time. */
__attribute__((noipa)) static int last(int n)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 20);
	return n;
}

static void set_filter(const char *how)
{
	if (!strcmp(how, "probe")) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0);
		syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL);
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL);
		return;
	}
	if (!strcmp(how, "refused")) {
		struct sock_fprog empty = { 0, filter };

		if (!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &empty, 0, 0))
			err(77, "the kernel takes an empty filter");
		return;
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!strcmp(how, "prctl") ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) :
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		err(77, "no filter");
}

int main(int argc, char **argv)
{
	char *args[] = { argv[2], NULL }, *env[] = { NULL };
	int status;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (!strcmp(argv[1], "setuid")) {
		getchar();
		set_filter("prctl");
		printf("setuid: %d\n", setuid(65534));
		getchar();
		return traced(0) - 1;
	}
	if (!fork()) {
		traced(1);
		set_filter(argv[1]);
		last(2);
		execve("missing", args, env);
		execve(argv[2], args, env);
		_exit(9);
	}
	wait(&status);
	printf("status %#x\n", status);
	return 0;
}
