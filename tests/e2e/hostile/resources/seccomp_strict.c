/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Each thread starts, and then sets seccomp's strict mode or a filter. The strict mode allows only
 * the system calls read, write, exit and sigreturn. The filter also allows exit_group, and kills
 * the process at any other system call. After it has set seccomp, each thread makes so many calls
 * that the agent needs more room for records and for open calls.
 * @markers 2000 sandboxed
 * @calls leaf >=400000
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "../hostile.h"

static int done_pipe[2];

static KEEP long leaf(long x) { return opaque(x) + 1; }
static KEEP long deep(long n) { return n ? opaque(deep(n - 1)) + 1 : leaf(n) - 1; }

static KEEP long sandboxed(int n)
{
	long i, s = 0;

	for (i = 0; i < 100000; i++)
		s += leaf(i) - i;
	s += deep(20000);
	for (i = 0; i < 500; i++)
		marker_begin(n);
	return s;
}

static KEEP void finish(long sum)
{
	char ok = sum == 120000 ? 'y' : 'n';

	syscall(SYS_write, done_pipe[1], &ok, 1);
	syscall(SYS_exit, 0);
}

static void allow_only(void)
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

	check(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	check(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p));
}

/* kind & 1: the thread sets a filter. Otherwise it sets the strict mode.
 * kind & 2: the thread makes a traced call before it sets seccomp. */
static KEEP void *thread_main(void *arg)
{
	long kind = (long)arg;

	if (kind & 2)
		leaf(1);
	if (kind & 1)
		allow_only();
	else
		check(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	finish(sandboxed((int)kind));
	return NULL;
}

int main(void)
{
	long kind;
	char ok;

	check(!pipe(done_pipe));
	for (kind = 0; kind < 4; kind++) {
		pthread_t t;

		check(!pthread_create(&t, NULL, thread_main, (void *)kind));
		check(read(done_pipe[0], &ok, 1) == 1 && ok == 'y');
		printf("sandbox %ld\n", kind);
	}
	return 0;
}
