/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signal handlers run on alternate stacks of several kinds: mapped, allocated by malloc with the
 * size _SC_SIGSTKSZ, or an array in a frame of the interrupted stack. Other frames of this stack
 * are below and above the array. The handlers are nested, recurse, and are left by siglongjmp.
 * @markers 4000 try_stack/after_signal
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include "../hostile.h"

static __thread volatile int runs, want_jump;
static __thread char *stack_low, *stack_high;
static __thread sigjmp_buf env;

static KEEP long recurse(int n) { return n ? opaque(recurse(n - 1)) + 1 : 0; }

static void on_usr2(int sig) { check_eq(recurse(3), 3); runs++; }

static void on_usr1(int sig)
{
	char here;

	check(&here >= stack_low && &here < stack_high);
	check_eq(recurse(20), 20);
	raise(SIGUSR2);
	runs++;
	if (want_jump)
		siglongjmp(env, 1);
}

static KEEP long raise_deep(int n)
{
	if (n)
		return opaque(raise_deep(n - 1)) + 1;
	raise(SIGUSR1);
	return 0;
}

static KEEP void after_signal(int n) { marker_begin(n); opaque(n); }

static KEEP void try_stack(char *mem, size_t size)
{
	stack_t ss = { .ss_sp = mem, .ss_size = size }, off = { .ss_flags = SS_DISABLE }, old;
	volatile int n;

	stack_low = mem;
	stack_high = mem + size;
	check(!sigaltstack(&ss, NULL));
	for (n = 0; n < 500; n++) {
		runs = 0;
		want_jump = n & 1;
		if (!sigsetjmp(env, 1))
			check_eq(raise_deep(n % 17), n % 17);
		check_eq(runs, 2);
		after_signal(n);
		check(!sigaltstack(NULL, &old));
		check(old.ss_sp == mem && old.ss_size == size && !old.ss_flags);
	}
	check(!sigaltstack(&off, NULL));
}

static KEEP void all_stacks(void)
{
	char here[65536];
	char *m = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t least = sysconf(_SC_SIGSTKSZ);

	check(m != MAP_FAILED);
	try_stack(m, 65536);
	try_stack(opaque(&here[0]), sizeof(here));
	m = malloc(least);
	try_stack(m, least);
	free(m);
	try_stack(opaque(&here[0]) + 1000, 60000);
}

static KEEP void *thread_main(void *arg)
{
	all_stacks();
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_usr1, .sa_flags = SA_ONSTACK };
	pthread_t t;

	check(!sigaction(SIGUSR1, &sa, NULL));
	sa.sa_handler = on_usr2;
	check(!sigaction(SIGUSR2, &sa, NULL));
	check(!pthread_create(&t, NULL, thread_main, NULL));
	all_stacks();
	check(!pthread_join(t, NULL));
	puts("4000 signals on alternate stacks");
	return 0;
}
