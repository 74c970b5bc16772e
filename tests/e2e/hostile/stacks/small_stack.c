/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent must need hardly any stack. Threads have the smallest possible stack and use nearly all
 * of it. Signal handlers run on the smallest alternate stack.
 * @markers 400 thread_main on_usr1
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include "../hostile.h"

static KEEP int fill(char *low)
{
	volatile char frame[64];
	int n;

	frame[0] = 1;
	if ((char *)frame < low + 512)
		return 1;
	n = opaque(fill(low)) + frame[0];
	return n;
}

static void on_usr1(int sig) { marker_begin(sig); }

static KEEP void *thread_main(void *arg)
{
	stack_t ss = { .ss_size = sysconf(_SC_MINSIGSTKSZ) };
	char *page = mmap(NULL, 65536 + 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t rounded = (ss.ss_size + 4095) & -4096ul;

	check(page != MAP_FAILED);
	check(!mprotect(page, 4096, PROT_NONE));
	ss.ss_sp = page + 4096 + rounded - ss.ss_size;
	if (ss.ss_size < 2048)
		ss.ss_size = 2048;
	/* 512 bytes more than the kernel needs, for the handler */
	ss.ss_size += 512;
	check(!sigaltstack(&ss, NULL));
	check(fill(arg) > 10);
	marker_begin(1);
	check(!raise(SIGUSR1));
	ss.ss_flags = SS_DISABLE;
	check(!sigaltstack(&ss, NULL));
	check(!munmap(page, 65536 + 4096));
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_usr1, .sa_flags = SA_ONSTACK };
	size_t size = PTHREAD_STACK_MIN;
	int n;

	check(!sigaction(SIGUSR1, &sa, NULL));
	for (n = 0; n < 200; n++) {
		char *m = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pthread_attr_t attr;
		pthread_t t;

		check(m != MAP_FAILED && !mprotect(m, 4096, PROT_NONE));
		check(!pthread_attr_init(&attr) && !pthread_attr_setstack(&attr, m + 4096, size));
		check(!pthread_create(&t, &attr, thread_main, m + 4096));
		check(!pthread_join(t, NULL));
		check(!munmap(m, size + 4096));
	}
	puts("200 small stacks");
	return 0;
}
