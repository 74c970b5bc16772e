/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Endless recursion into the guard page: the handler on its alternate stack
 * sees a fault just below the stack and jumps out; twenty times, in a thread.
 * Calls in the last PB_HIT_ROOM bytes that would need C code are counted as lost.
 * @markers 20 thread_main/one_overflow
 * @buffer 128M
 * @lost 2080
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include "hostile.h"

static sigjmp_buf env;
static char *volatile fault, *stack_low;

static KEEP long endless(long n)
{
	volatile char pad[64];

	pad[0] = n;
	return opaque(endless(n + 1)) + pad[0];
}

static void on_segv(int sig, siginfo_t *si, void *uc)
{
	fault = si->si_addr;
	siglongjmp(env, 1);
}

static KEEP void one_overflow(int n)
{
	fault = NULL;
	if (!sigsetjmp(env, 1))
		endless(0);
	check(fault < stack_low && fault >= stack_low - 65536);
	marker_begin(n);
}

static KEEP void *thread_main(void *arg)
{
	stack_t ss = { .ss_sp = malloc(65536), .ss_size = 65536 };
	int n;

	check(!sigaltstack(&ss, NULL));
	for (n = 0; n < 20; n++)
		one_overflow(n);
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	size_t size = 512 << 10;
	char *m = mmap(NULL, size + 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t t;

	check(m != MAP_FAILED);
	stack_low = m + 65536;
	check(!mprotect(stack_low, size, PROT_READ | PROT_WRITE));
	check(!sigaction(SIGSEGV, &sa, NULL));
	check(!pthread_attr_init(&attr));
	check(!pthread_attr_setstack(&attr, stack_low, size));
	check(!pthread_create(&t, &attr, thread_main, NULL));
	check(!pthread_join(t, NULL));
	puts("20 overflows");
	return 0;
}
